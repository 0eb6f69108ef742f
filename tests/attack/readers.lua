-- Functions that read files, by kind: { the folder of samples under tests/data/samples or the name of a text here, the ending of the file,
-- a function of its path }.
local ms = require "lunaria"
local D = ms.dataset

local function rows(dataset)
  local count = 0
  for _ in dataset:create_tuple_iterator { num_epochs = 1 } do
    count = count + 1
    if count == 50 then break end
  end
end

local function with_ones(f, inputs)
  local values = {}
  for i, input in ipairs(inputs) do
    local shape = {}
    for k, n in ipairs(input.shape or {}) do shape[k] = math.type(n) == "integer" and n < 64 and n or 1 end
    values[i] = ms.ones(shape, rawget(ms, input.dtype) or ms.float32)
  end
  f(table.unpack(values))
end

-- Texts that are no samples of the tests: of small files that readers take.
local TEXTS = {
  glove = "the 0.5 0.25 1\nof 1 2 3\nand -1 0.125 3e2\n", words = "deep,1\nlearning,2\n", jieba = "今天 20\n天气 30 n\n气 5\n很 8\n",
  bpe = "#version: 0.2\nl o\nlo w\n", vocabulary = '{"l": 0, "o": 1, "lo": 2, "w": 3, "low": 4}',
  settings = '{"seed": 3, "numParallelWorkers": 2, "prefetchSize": 4}', chip = '{"cores": 32, "hbm_bytes_per_second": 1.2e12}',
  lines = '{"a": 1, "b": [1.5, 2]}\n{"a": 2, "b": [3.5, 4]}\n', manifest =
  '{"source": "a.jpg", "usage": "train", "annotation": [{"name": "cat"}]}\n',
}
TEXTS.markov = "-0.3 -3.14e+100 -3.14e+100 -1.4\n-3.14e+100 -0.5 -0.9 -3.14e+100\n-0.6 -3.14e+100 -3.14e+100 -0.8\n"
  .. "-3.14e+100 -0.3 -1.3 -3.14e+100\n-0.7 -3.14e+100 -3.14e+100 -0.7\n今:-1.0,天:-2.0\n天:-1.0\n今:-3.0\n气:-1.5\n"
TEXTS.pipeline = ms.json.encode(D.serialize(D.NumpySlicesDataset({ x = { 1, 2, 3 } }, { shuffle = false }):batch(2):repeat_(2)))

-- Kinds: the folder of samples or the text, the ending of the file, and what reads it.
local KINDS = {
  { "npy", ".npy", function(p) ms.load(p) end }, { "npy", ".npz", function(p) ms.load(p) end },
  { "safetensors", ".safetensors", function(p) ms.load(p) ms.io.read_safetensors(p, { mmap = true }) end },
  { "gguf", ".gguf", function(p) ms.load_gguf(p) ms.load_gguf(p, { mmap = false, float = true }) end },
  { "gguf", ".gguf", function(p) ms.lite.load_decoder(p, { length = 8 })(ms.ones({ 1, 2 }, ms.int64)) end },
  { "safetensors", ".safetensors", function(p) ms.load_checkpoint(p) end }, { "idx", ".idx", function(p) ms.load_idx(p) end },
  { "ckpt", ".ckpt", function(p) ms.load_checkpoint(p) end }, { "ckpt", ".ckpt", function(p) ms.io.read_ckpt(p) end },
  { "mindir", ".mindir", function(p) (ms.load(p))(ms.ones { 2, 4 }) end }, { "onnx", ".onnx", function(p)
    local f, _, about = ms.load(p)
    with_ones(f, about.inputs)
  end },
  { "mindrecord", ".mindrecord", function(p) rows(D.MindDataset(p)) end },
  { "mindrecord", ".mindrecord", function(p) for _ in ms.mindrecord.FileReader(p):get_next() do end end },
  { "tfrecord", ".tfrecord", function(p) rows(D.TFRecordDataset(p)) end }, { "csv", ".csv", function(p) rows(D.CSVDataset(p)) end },
  { "csv", ".csv", function(p) rows(D.CSVDataset(p, { column_defaults = { "", "", "", "" } })) end },
  { "csv", ".txt", function(p) rows(D.TextFileDataset(p)) end },
  { "img", ".png", function(p) D.vision.Decode()(D.vision.read_file(p)) end }, { "img", ".jpg", function(p) D.vision.read_image(p) end },
  { "wav", ".wav", function(p) D.audio.read(p) end }, { "events", ".events", function(p) ms.io.read_events(p) end },
  { "tensorboard", ".events", function(p) ms.io.read_events(p, true) end },
  { "glove", ".txt", function(p) D.text.GloVe.from_file(p) end }, { "glove", ".txt", function(p) D.text.Vectors.from_file(p) end },
  { "words", ".txt", function(p) D.text.Vocab.from_file(p, ",") end },
  { "jieba", ".txt", function(p) D.text.JiebaTokenizer(nil, p, { mode = "MP" })("今天天气很好") end },
  { "markov", ".txt", function(p) D.text.JiebaTokenizer(p, nil, { mode = "HMM" })("今天天气很好") end },
  { "bpe", ".txt", function(p) D.text.ByteLevelBPETokenizer(D.text.Vocab.from_list { "low" }, p)("lowly") end },
  { "vocabulary", ".json", function(p) D.text.ByteLevelBPETokenizer(p, p) end },
  { "settings", ".json", function(p) D.config.load(p) end }, { "chip", ".json", function(p) ms.ascend.estimate("lenet", { chip = p }) end },
  { "lines", ".jsonl", function(p) rows(D.JSONLinesDataset(p)) end }, { "manifest", ".json", function(p) D.ManifestDataset(p) end },
  { "pipeline", ".json", function(p) rows(D.deserialize(nil, p)) end },
}

return { kinds = KINDS, texts = TEXTS }
