-- Sources of known data sets: texts and sounds.
local ms = require "lunaria"
local data = require "lunaria.data"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.dataset.dataset"
local files = require "lunaria.dataset.files"
require "lunaria.dataset.sources" -- which defines define_source

local fail, describe, check = arguments.fail, arguments.describe, arguments.check
local define = base.define_source
local folder_of, list_folder, text_of = files.folder_of, files.list_folder, files.text_of

local function json_lines(where, paths)
  local rows = {}
  for _, path in ipairs(paths) do
    local number = 0
    for line in (text_of(where, path) .. "\n"):gmatch "(.-)\r?\n" do
      number = number + 1
      if line:find "%S" then
        local ok, row = pcall(ms.json.decode, line)
        if not ok or type(row) ~= "table" then
          fail(where, ("line %d of %s is no JSON: %s"):format(number, path, ok and "it is no object" or tostring(row):gsub("^.-: ", "")))
        end
        rows[#rows + 1] = { row, number, path }
      end
    end
  end
  if #rows == 0 then fail(where, "there are no lines in " .. table.concat(paths, ", ")) end
  return rows
end

local function texts(where, names, columns) return data.table(where, names, columns) end

define("JSONLinesDataset", "dataset_files, columns_list=nil, ", [[
Files with an object of JSON in each line. dataset_files: a path or a list. columns_list: the names that are the columns, else those
of the first line. Strings are texts, lists of
strings are lists of texts, numbers and lists of them are tensors, which must have one shape in all lines.

    > f = io.open("/tmp/lunaria_help.jsonl", "w") f:write('{"x": 1, "s": "one"}\n{"x": 2, "s": "two"}\n') f:close()
    > ms.dataset.JSONLinesDataset("/tmp/lunaria_help.jsonl", { shuffle = false }):create_dict_iterator()().s
    one
    > (os.remove("/tmp/lunaria_help.jsonl"))
    true]], true, function(a, name)
  local rows = json_lines(name, base.paths_of(name, "dataset_files", a.dataset_files))
  local names = a.columns_list and base.name_list(name, "columns_list", a.columns_list)
  if not names then
    names = {}
    for column in pairs(rows[1][1]) do names[#names + 1] = column end
    table.sort(names)
  end
  local columns = {}
  for c, column in ipairs(names) do
    local list = {}
    for i, row in ipairs(rows) do
      local value = row[1][column]
      if value == nil then fail(name, ("line %d of %s has no '%s'"):format(row[2], row[3], column)) end
      if type(value) ~= type(rows[1][1][column]) then
        fail(name, ("'%s' is %s in line %d of %s and %s in the first"):format(column, describe(value), row[2], row[3],
          describe(rows[1][1][column])))
      end
      list[i] = value
    end
    if type(list[1]) ~= "string" then
      local ok, tensor = pcall(ms.tensor, list)
      if not ok then fail(name, ("column '%s' cannot be a tensor: %s"):format(column, tostring(tensor):gsub("^.-: ", ""))) end
      list = tensor
    end
    columns[c] = list
  end
  return texts(name, names, columns)
end)

-- What the rows of CLUE's tasks have: for training and evaluation, and for tests.
local clue = {
  AFQMC = { { "label", "sentence1", "sentence2" }, { "id", "sentence1", "sentence2" } },
  CMNLI = { { "label", "sentence1", "sentence2" }, { "id", "sentence1", "sentence2" } },
  CSL = { { "id", "abst", "keyword", "label" }, { "id", "abst", "keyword" } },
  IFLYTEK = { { "label", "label_des", "sentence" }, { "id", "sentence" } },
  TNEWS = { { "label", "label_desc", "sentence", "keywords" }, { "id", "sentence", "keywords" } },
  WSC = {
    { "span1_index", "span2_index", "span1_text", "span2_text", "idx", "label", "text" },
    { "span1_index", "span2_index", "span1_text", "span2_text", "idx", "text" },
  },
}

define("CLUEDataset", "dataset_files, task='AFQMC', usage='train', ", [[
Tasks of CLUE: a column for each field, which are texts. dataset_files: a path or a list of files with JSON lines. task: AFQMC,
CMNLI, CSL, IFLYTEK, TNEWS or WSC. usage: "train",
"eval" or "test".

    > (pcall(ms.dataset.CLUEDataset, "/no/such/file"))
    false]], true, function(a, name)
  local task = check.choice(name, "task", a.task, { "AFQMC", "CMNLI", "CSL", "IFLYTEK", "TNEWS", "WSC" })
  local usage = check.choice(name, "usage", a.usage, { "train", "eval", "test" })
  local names = clue[task][usage == "test" and 2 or 1]
  local columns = {}
  for c in ipairs(names) do columns[c] = {} end
  for i, row in ipairs(json_lines(name, base.paths_of(name, "dataset_files", a.dataset_files))) do
    local object = row[1]
    -- The spans of WSC are in a table of their own.
    for key, value in pairs(type(object.target) == "table" and object.target or {}) do object[key] = value end
    for c, column in ipairs(names) do
      local value = object[column]
      if value == nil then fail(name, ("line %d of %s has no '%s'"):format(row[2], row[3], column)) end
      columns[c][i] = type(value) == "table" and table.concat(value, ",") or tostring(value)
    end
  end
  return texts(name, names, columns)
end)

define("AGNewsDataset", "dataset_dir, usage='all', ", [[
AG News: the columns index, title and description, texts. dataset_dir: the folder of train.csv and test.csv. usage: "train", "test"
or "all".

    > (pcall(ms.dataset.AGNewsDataset, "/no/such/folder"))
    false]], true, function(a, name)
  local folder = folder_of(name, "dataset_dir", a.dataset_dir)
  local usage, paths = check.choice(name, "usage", a.usage, { "train", "test", "all" }), {}
  for _, part in ipairs { "train", "test" } do
    if usage == part or usage == "all" then paths[#paths + 1] = ("%s/%s.csv"):format(folder, part) end
  end
  return data.csv(paths, ",", { "index", "title", "description" }, {}, {})
end)

define("IMDBDataset", "dataset_dir, usage='all', ", [[
IMDB: the columns text and label, int32: 1 for the texts of the folder pos, 0 for neg. dataset_dir: the folder of train/pos,
train/neg, test/pos and test/neg. usage: "train",
"test" or "all".

    > (pcall(ms.dataset.IMDBDataset, "/no/such/folder"))
    false]], true, function(a, name)
  local folder = folder_of(name, "dataset_dir", a.dataset_dir)
  local usage, list, labels = check.choice(name, "usage", a.usage, { "train", "test", "all" }), {}, {}
  for _, part in ipairs { "train", "test" } do
    for label, kind in ipairs((usage == part or usage == "all") and { "neg", "pos" } or {}) do
      local inner = ("%s/%s/%s"):format(folder, part, kind)
      for _, file in ipairs(list_folder(name, inner)) do
        if file:find "%.txt$" then list[#list + 1], labels[#labels + 1] = text_of(name, inner .. "/" .. file), label - 1 end
      end
    end
  end
  if #list == 0 then fail(name, "there are no texts in " .. folder) end
  return texts(name, { "text", "label" }, { list, ms.tensor(labels, ms.int32) })
end)

for name, what in pairs {
  PennTreebankDataset = { "The Penn Treebank", "ptb.%s.txt" }, WikiTextDataset = { "WikiText", "wiki.%s.tokens" },
} do
  define(name, "dataset_dir, usage='all', ", ([[
%s: the lines that are not empty as the column text. dataset_dir: the folder of its files. usage: "train", "valid", "test" or
"all".

    > (pcall(ms.dataset.%s, "/no/such/folder"))
    false]]):format(what[1], name), true, function(a)
    local folder = folder_of(name, "dataset_dir", a.dataset_dir)
    local usage, paths = check.choice(name, "usage", a.usage, { "train", "valid", "test", "all" }), {}
    for _, part in ipairs { "train", "valid", "test" } do
      if usage == part or usage == "all" then paths[#paths + 1] = folder .. "/" .. what[2]:format(part) end
    end
    return data.lines(paths)
  end)
end

define("SQuADDataset", "dataset_dir, usage='all', ", [[
SQuAD 1 and 2: the columns context, question, text, the list of answers, and answer_start, the list of their places as texts.
dataset_dir: the folder of the files train-v*.json and
dev-v*.json. usage: "train", "dev" or "all". Questions without an answer have an empty text and the place -1.

    > (pcall(ms.dataset.SQuADDataset, "/no/such/folder"))
    false]], true, function(a, name)
  local folder = folder_of(name, "dataset_dir", a.dataset_dir)
  local usage = check.choice(name, "usage", a.usage, { "train", "dev", "all" })
  local contexts, questions, answers, starts = {}, {}, {}, {}
  for _, file in ipairs(list_folder(name, folder)) do
    local part = file:match "^(%a+)%-v[%d.]+%.json$"
    if (part == "train" or part == "dev") and (usage == part or usage == "all") then
      local ok, all = pcall(ms.json.decode, text_of(name, folder .. "/" .. file))
      if not ok or type(all) ~= "table" or type(all.data) ~= "table" then fail(name, ("%s/%s is no such file"):format(folder, file)) end
      for _, article in ipairs(all.data) do
        for _, paragraph in ipairs(article.paragraphs or {}) do
          for _, question in ipairs(paragraph.qas or {}) do
            local i = #contexts + 1
            local found, places = {}, {}
            for k, answer in ipairs(question.answers or {}) do found[k], places[k] = answer.text, ("%d"):format(answer.answer_start) end
            if #found == 0 then found, places = { "" }, { "-1" } end
            contexts[i], questions[i] = paragraph.context, question.question
            answers[i], starts[i] = table.concat(found, "\0"), table.concat(places, "\0")
          end
        end
      end
    end
  end
  if #contexts == 0 then fail(name, ("there are no questions for usage '%s' in %s"):format(usage, folder)) end
  return texts(name, { "context", "question", "text", "answer_start" }, { contexts, questions, answers, starts }), { _lists = { "text",
    "answer_start" } }
end)

local function endless(paths, rest) return data.files("waveform", paths, rest), { _wav = true } end

define("SpeechCommandsDataset", "dataset_dir, usage='all', ", [[
Speech Commands: the columns waveform, float32 of (1, samples), sample_rate, int32, label, the word, speaker_id and utterance_number,
int32. dataset_dir: the folder of a folder for
each word, and of validation_list.txt and testing_list.txt. usage: "train", "valid", "test" or "all".

    > (pcall(ms.dataset.SpeechCommandsDataset, "/no/such/folder"))
    false]], true, function(a, name)
  local folder = folder_of(name, "dataset_dir", a.dataset_dir)
  local usage, listed = check.choice(name, "usage", a.usage, { "train", "valid", "test", "all" }), {}
  for part, file in pairs { valid = "validation_list.txt", test = "testing_list.txt" } do
    local path = folder .. "/" .. file
    if usage ~= "all" and ms.io.kind(path) then
      for line in text_of(name, path):gmatch "[^\n]+" do listed[line:match "^%s*(.-)%s*$"] = part end
    elseif usage == part then
      fail(name, ("there is no file %s/%s"):format(folder, file))
    end
  end
  local paths, words, speakers, numbers = {}, {}, {}, {}
  for _, word in ipairs(list_folder(name, folder)) do
    for _, file in ipairs(word:sub(1, 1) ~= "_" and ms.io.list_folder(folder .. "/" .. word) and list_folder(name,
      folder .. "/" .. word) or {}) do
      local speaker, number = file:match "^(%w+)_nohash_(%d+)%.wav$"
      if speaker and (usage == "all" or (listed[word .. "/" .. file] or "train") == usage) then
        local i = #paths + 1
        paths[i], words[i], speakers[i], numbers[i] = ("%s/%s/%s"):format(folder, word, file), word, speaker, math.tointeger(number)
      end
    end
  end
  if #paths == 0 then fail(name, ("there are no sounds for usage '%s' in %s"):format(usage, folder)) end
  return endless(paths, texts(name, { "label", "speaker_id", "utterance_number" }, { words, speakers, ms.tensor(numbers, ms.int32) }))
end)

define("LJSpeechDataset", "dataset_dir, ", [[
LJ Speech: the columns waveform, float32 of (1, samples), sample_rate, int32, transcription and normalized_transcript. dataset_dir:
the folder of metadata.csv and the folder wavs.

    > (pcall(ms.dataset.LJSpeechDataset, "/no/such/folder"))
    false]], true, function(a, name)
  local folder = folder_of(name, "dataset_dir", a.dataset_dir)
  local paths, plain, normal = {}, {}, {}
  for line in (text_of(name, folder .. "/metadata.csv") .. "\n"):gmatch "(.-)\r?\n" do
    local id, text, normalized = line:match "^([^|]+)|([^|]*)|?(.*)$"
    if id then
      local i = #paths + 1
      paths[i], plain[i], normal[i] = ("%s/wavs/%s.wav"):format(folder, id), text, normalized
    end
  end
  if #paths == 0 then fail(name, folder .. "/metadata.csv has no lines") end
  return endless(paths, texts(name, { "transcription", "normalized_transcript" }, { plain, normal }))
end)

return {}
