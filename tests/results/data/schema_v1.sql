BEGIN TRANSACTION;
CREATE TABLE attachment (
	measurement_id VARCHAR(32) NOT NULL, 
	ordinal INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	encoding TEXT NOT NULL, 
	size_bytes BIGINT NOT NULL, 
	data BLOB NOT NULL, 
	PRIMARY KEY (measurement_id, ordinal), 
	FOREIGN KEY(measurement_id) REFERENCES measurement (id)
);
INSERT INTO "attachment" VALUES('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',0,'profile','zlib',1200,X'789C4BCBB3D530D454C84DCCC9C94FE63234533034E64A1B151B151B151B151B846200644835E8');
INSERT INTO "attachment" VALUES('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',1,'output','identity',2,X'00FF');
CREATE TABLE build (
	id VARCHAR(64) NOT NULL, 
	"key" VARCHAR(16) NOT NULL, 
	allocator TEXT NOT NULL, 
	revision TEXT NOT NULL, 
	dirty BOOLEAN NOT NULL, 
	version TEXT NOT NULL, 
	compiler TEXT NOT NULL, 
	flags TEXT NOT NULL, 
	path TEXT NOT NULL, 
	sha256 TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "build" VALUES('ee1108425b4c3e28b5a33abb0e8c830f7ed9a4be9169e7c87e54b2d9369bef63','82a23e4c128bf548','ebb','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',0,'','','','','');
INSERT INTO "build" VALUES('0d02896bcd753237ca290fad79ee952f52ca21ff8c7521cd157797d8bf9c68c5','0e2654d5d50667e2','jemalloc','5.3.0-1',0,'5.3.0','','','','');
CREATE TABLE environment (
	id VARCHAR(64) NOT NULL, 
	"key" VARCHAR(16) NOT NULL, 
	machine TEXT NOT NULL, 
	kernel TEXT NOT NULL, 
	cpu_model TEXT NOT NULL, 
	cpu_count INTEGER NOT NULL, 
	memory_bytes BIGINT NOT NULL, 
	page_size_bytes INTEGER NOT NULL, 
	thp_mode TEXT NOT NULL, 
	governor TEXT NOT NULL, 
	libc TEXT NOT NULL, 
	tunables TEXT NOT NULL, 
	tools JSON NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "environment" VALUES('a2e5ebf0b93733f7cbe3edd1a27248401c35a826defc7ec9ef04861d523c8d2c','3bd3308ab01d3b00','x86_64','6.1.0-18-amd64','AMD EPYC 7B13',2,8589934592,4096,'madvise','performance','glibc 2.36','glibc.cpu.hwcaps=-AVX512F','{"valgrind": "3.19.0", "python": "3.11.2"}');
CREATE TABLE measurement (
	id VARCHAR(32) NOT NULL, 
	run_id VARCHAR(32) NOT NULL, 
	build_id VARCHAR(64) NOT NULL, 
	workload TEXT NOT NULL, 
	variant TEXT NOT NULL, 
	profile TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	arm TEXT NOT NULL, 
	status TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	repeat INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	command TEXT NOT NULL, 
	active_allocator TEXT NOT NULL, 
	modes JSON NOT NULL, 
	checksum TEXT NOT NULL, 
	operations BIGINT, 
	started_at DATETIME NOT NULL, 
	duration_s FLOAT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(run_id) REFERENCES run (id), 
	FOREIGN KEY(build_id) REFERENCES build (id)
);
INSERT INTO "measurement" VALUES('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','11111111111111111111111111111111','ee1108425b4c3e28b5a33abb0e8c830f7ed9a4be9169e7c87e54b2d9369bef63','teardown','default','quick','smaps','tree','ok','',0,1,'teardown --rounds 3','libebb.so','{"heap": "native", "park": "emulated"}','0123456789abcdef',1099511627776,'2026-05-04 03:02:02.123456',0.1);
INSERT INTO "measurement" VALUES('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','11111111111111111111111111111111','0d02896bcd753237ca290fad79ee952f52ca21ff8c7521cd157797d8bf9c68c5','teardown','default','quick','smaps','reference','failed','The workload ended by signal 11.',0,2,'teardown --rounds 3','libebb.so','{"heap": "native", "park": "emulated"}','0123456789abcdef',NULL,'2026-05-04 03:02:02.123456',0.1);
CREATE TABLE run (
	id VARCHAR(32) NOT NULL, 
	kind TEXT NOT NULL, 
	command TEXT NOT NULL, 
	suite_revision TEXT NOT NULL, 
	environment_id VARCHAR(64) NOT NULL, 
	started_at DATETIME NOT NULL, 
	finished_at DATETIME, 
	status TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(environment_id) REFERENCES environment (id)
);
INSERT INTO "run" VALUES('11111111111111111111111111111111','bench','make bench','5555555555555555555555555555555555555555','a2e5ebf0b93733f7cbe3edd1a27248401c35a826defc7ec9ef04861d523c8d2c','2026-05-04 03:02:01.123456','2026-05-04 03:04:01.123456','finished');
CREATE TABLE sample (
	measurement_id VARCHAR(32) NOT NULL, 
	ordinal INTEGER NOT NULL, 
	metric TEXT NOT NULL, 
	unit TEXT NOT NULL, 
	value FLOAT NOT NULL, 
	checkpoint INTEGER, 
	label TEXT, 
	time_s FLOAT, 
	detail TEXT, 
	PRIMARY KEY (measurement_id, ordinal), 
	FOREIGN KEY(measurement_id) REFERENCES measurement (id)
)
 WITHOUT ROWID

;
INSERT INTO "sample" VALUES('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',0,'rss_bytes','bytes',1000000.0,0,'round',0.0,NULL);
INSERT INTO "sample" VALUES('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',1,'rss_bytes','bytes',1000001.0,1,'round',0.125,NULL);
INSERT INTO "sample" VALUES('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',2,'rss_bytes','bytes',1000002.0,2,'round',0.25,NULL);
CREATE TABLE schema_version (
	version INTEGER NOT NULL, 
	summary TEXT NOT NULL, 
	applied_at DATETIME NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "schema_version" VALUES(1,'runs, measurements, samples and attachments','2026-11-30 22:11:33.658958');
COMMIT;
