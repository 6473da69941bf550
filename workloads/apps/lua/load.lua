-- String work for the `lua` workload: answers each line "round <seed> <words>" with one document.
--
-- Every value is a new Lua string or table, so each goes through realloc, the only allocation function
-- that Lua calls. app.py computes the same document in Python.

local function next_random(state)
  return (state * 1103515245 + 12345) & 0x7fffffff
end

local function make_vocabulary(state, count)
  local vocabulary = {}
  for i = 1, count do
    state = next_random(state)
    local word = ""
    for _ = 1, 3 + (state >> 8) % 12 do
      state = next_random(state)
      word = word .. string.char(97 + (state >> 8) % 26)
    end
    vocabulary[i] = word
  end
  return vocabulary, state
end

local function make_text(vocabulary, state, count)
  local words = {}
  for i = 1, count do
    state = next_random(state)
    words[i] = vocabulary[(state >> 8) % #vocabulary + 1]
  end
  return table.concat(words, " ")
end

local function count_words(text)
  local counts, keys = {}, {}
  for word in text:gmatch("%a+") do
    if not counts[word] then
      counts[word] = 0
      keys[#keys + 1] = word
    end
    counts[word] = counts[word] + 1
  end
  table.sort(keys)
  return counts, keys
end

local function answer(seed, count)
  local vocabulary, state = make_vocabulary(seed, count // 4 + 1)
  local text = make_text(vocabulary, state, count)
  local counts, keys = count_words(text)
  local lines, grown = {}, ""
  for i, word in ipairs(keys) do
    lines[i] = string.format("%s=%d:%s", word, counts[word], word:reverse():upper())
    -- Quadratic on purpose: a string that grows by copies is what scripts do.
    if i % 8 == 0 then
      grown = grown .. word .. ","
    end
  end
  local document = table.concat(lines, "\n"):gsub("[AEIOU]", "<%0>")
  local padded = ("%s"):rep(4, "|"):gsub("%%s", text:sub(1, 64))
  return document .. "\n" .. grown .. "\n" .. padded .. "\n"
end

for line in io.lines() do
  local seed, count = line:match("^round (%d+) (%d+)$")
  io.write(answer(tonumber(seed), tonumber(count)), "=== done\n")
  io.flush()
end
