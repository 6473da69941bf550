# Record and regular-expression work for the `perl` workload: answers each line "round <seed> <records>".
#
# Stresses small strings, hashes and arrays that grow, substitutions that change a string's length, and
# sorting. app.py computes the same answer in Python.
use strict;
use warnings;
use integer;

$| = 1;

my $state;

sub next_random {
    $state = ($state * 1103515245 + 12345) & 0x7fffffff;
    return $state >> 8;
}

sub make_word {
    my $word = '';
    my $length = 3 + next_random() % 12;
    $word .= chr(97 + next_random() % 26) for 1 .. $length;
    return $word;
}

sub make_records {
    my ($count) = @_;
    my @names = map { make_word() } 1 .. $count / 4 + 1;
    my @lines;
    for my $id (1 .. $count) {
        my $name = $names[next_random() % @names];
        push @lines, join(',', $id, $name, next_random() % 100000);
    }
    return join("\n", @lines);
}

sub group_by_name {
    my ($text) = @_;
    my %groups;
    for my $line (split /\n/, $text) {
        my ($id, $name, $value) = split /,/, $line;
        push @{ $groups{$name} }, { id => $id, value => $value };
    }
    return \%groups;
}

sub answer {
    my ($seed, $count) = @_;
    $state = $seed;
    my $text   = make_records($count);
    my $groups = group_by_name($text);
    my @lines;
    for my $name (sort keys %$groups) {
        my @members = sort { $a->{value} <=> $b->{value} || $a->{id} <=> $b->{id} } @{ $groups->{$name} };
        my $sum = 0;
        $sum += $_->{value} for @members;
        push @lines, sprintf('%s %d %s', reverse($name) . '', $sum, join('+', map { $_->{id} } @members));
    }
    my $document = join("\n", @lines);
    $document =~ s/([aeiou]+)/'<' . uc($1) . '>'/ge;
    my $numbers = () = $text =~ /\b\d{5}\b/g;
    (my $squeezed = $text) =~ s/\d+,//g;
    $squeezed =~ s/\n\d+|\n/;/g;
    return "$document\n$numbers\n" . substr($squeezed, 0, 4096) . "\n";
}

while (my $line = <STDIN>) {
    my ($seed, $count) = $line =~ /^round (\d+) (\d+)$/;
    print answer($seed, $count), "=== done\n";
}
