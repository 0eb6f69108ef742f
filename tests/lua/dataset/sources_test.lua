-- Sources of known data sets, by tiny folders that are written here.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset

local folder = os.tmpname()
os.remove(folder)
os.execute("mkdir " .. folder)

local function write(path, text)
  path = folder .. "/" .. path
  os.execute("mkdir -p " .. path:match "^(.*)/")
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function all(ds)
  local list = {}
  for row in ds:create_dict_iterator() do
    local plain = {}
    for name, value in pairs(row) do plain[name] = ms.is_tensor(value) and value:tolist() or value end
    list[#list + 1] = plain
  end
  return list
end

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(tostring(message):find(pattern), message)
end

local function bytes(text) return { text:byte(1, -1) } end
local ordered = { shuffle = false }
local function with(options)
  options.shuffle = false
  return options
end

local png = assert(io.open("tests/data/samples/img/rgb.png", "rb")):read "a"

t.test("folders of pictures", function()
  write("images/cat/b.JPG", "cat b")
  write("images/cat/a.png", "cat a")
  write("images/cat/deep/c.png", "cat c")
  write("images/cat/notes.txt", "no")
  write("images/dog/d.jpeg", "dog")
  local ds = D.ImageFolderDataset(folder .. "/images", ordered)
  t.equal(all(ds), {
    { image = bytes "cat a", label = 0 }, { image = bytes "cat b", label = 0 }, { image = bytes "cat c", label = 0 }, {
      image = bytes "dog", label = 1 },
  })
  t.equal(ds:batch(1):get_class_indexing(), { cat = 0, dog = 1 })
  t.equal(all(D.ImageFolderDataset(folder .. "/images", with { class_indexing = { dog = 7 } })), { { image = bytes "dog", label = 7 } })
  t.equal(#all(D.ImageFolderDataset(folder .. "/images", { extensions = { ".png" } })), 2)
  write("pictures/one/x.png", png)
  local image = D.ImageFolderDataset(folder .. "/pictures", { decode = true }):create_tuple_iterator()()
  t.equal(image.ndim, 3)
  fails("no picture", D.ImageFolderDataset, folder .. "/images/dog")
  fails("there is no folder", D.ImageFolderDataset, folder .. "/none")
end)

t.test("manifests, CelebA, VOC and COCO", function()
  write("m/list.manifest", ('{"source": "%s/images/dog/d.jpeg", "usage": "TRAIN", "annotation": [{"name": "dog"}]}\n')
    :format(folder) .. ('{"source": "%s/images/cat/a.png", "usage": "EVAL", "annotation": [{"name": "cat"}]}\n'):format(folder))
  t.equal(all(D.ManifestDataset(folder .. "/m/list.manifest", ordered)), { { image = bytes "dog", label = 0 } })
  t.equal(all(D.ManifestDataset(folder .. "/m/list.manifest", "eval", ordered)), { { image = bytes "cat a", label = 0 } })
  write("m/bad.manifest", "{}\n")
  fails("line 1 of .* has no source", D.ManifestDataset, folder .. "/m/bad.manifest")

  local signs = ("-1 "):rep(39)
  write("celeba/list_attr_celeba.txt", "2\nnames\n1.jpg  1 " .. signs .. "\n2.jpg " .. signs .. "1\n")
  write("celeba/list_eval_partition.txt", "1.jpg 0\n2.jpg 2\n")
  write("celeba/img_align_celeba/1.jpg", "one")
  write("celeba/img_align_celeba/2.jpg", "two")
  local rows = all(D.CelebADataset(folder .. "/celeba", ordered))
  t.equal({ rows[1].image, rows[1].attr[1], rows[1].attr[40], rows[2].attr[1], rows[2].attr[40] }, { bytes "one", 1, 0, 0, 1 })
  t.equal(#all(D.CelebADataset(folder .. "/celeba", "test")), 1)

  write("voc/ImageSets/Main/train.txt", "a\nb\n")
  write("voc/ImageSets/Segmentation/train.txt", "a\n")
  write("voc/JPEGImages/a.jpg", "pa")
  write("voc/JPEGImages/b.jpg", "pb")
  write("voc/SegmentationClass/a.png", "sa")
  local function object(name, x)
    local box = ("<bndbox><xmin>%d</xmin><ymin>2</ymin><xmax>10</xmax><ymax>20</ymax></bndbox>"):format(x)
    return ("<object><name>%s</name><truncated>1</truncated><difficult>0</difficult>%s</object>"):format(name, box)
  end
  write("voc/Annotations/a.xml", "<annotation>" .. object("dog", 1) .. object("cat", 3) .. "</annotation>")
  write("voc/Annotations/b.xml", "<annotation></annotation>")
  local voc = D.VOCDataset(folder .. "/voc", "Detection", "train", ordered)
  t.equal(voc:get_col_names(), { "image", "bbox", "label", "difficult", "truncate" })
  rows = all(voc)
  t.equal(rows[1], {
    image = bytes "pa", bbox = { { 1.0, 2.0, 9.0, 18.0 }, { 3.0, 2.0, 7.0, 18.0 } }, label = { { 1 }, { 0 } }, difficult = { { 0 }, {
      0 } }, truncate = { { 1 }, { 1 } },
  })
  t.equal(rows[2].bbox, {})
  t.equal(voc:get_class_indexing(), { cat = 0, dog = 1 })
  t.equal(all(D.VOCDataset(folder .. "/voc", ordered)), { { image = bytes "pa", target = bytes "sa" } })
  write("voc/Annotations/b.xml", (object("dog", 1):gsub(">0<", ">no<")))
  fails("b.xml has an object whose difficult or truncated is no number", D.VOCDataset, folder .. "/voc", "Detection")
  write("voc/Annotations/b.xml", "<object><name>x</name></object>")
  fails("without a name or a box", D.VOCDataset, folder .. "/voc", "Detection")

  write("coco/1.jpg", "c1")
  write("coco/all.json", ms.json.encode {
    images = { { id = 5, file_name = "1.jpg" }, { id = 6, file_name = "none.jpg" } }, categories = { { id = 3, name = "car" } },
    annotations = {
      { image_id = 5, bbox = { 1, 2, 3, 4 }, category_id = 3, iscrowd = 0, caption = "a car", keypoints = { 1, 2, 1 }, num_keypoints = 1,
        segmentation = { { 1, 2, 3, 4, 5, 6 } } },
      { image_id = 5, bbox = { 0, 0, 1, 1 }, category_id = 3, iscrowd = 1, caption = "again", keypoints = { 0, 0, 0 }, num_keypoints = 0,
        segmentation = { { 1, 2, 3, 4 } } },
    },
  })
  local function coco(task) return all(D.CocoDataset(folder .. "/coco", folder .. "/coco/all.json", task))[1] end
  t.equal(coco "Detection", { image = bytes "c1", bbox = { { 1.0, 2.0, 3.0, 4.0 }, { 0.0, 0.0, 1.0, 1.0 } }, category_id = { { 3 }, {
    3 } }, iscrowd = { { 0 }, { 1 } } })
  t.equal(coco "Captioning", { image = bytes "c1", captions = { "a car", "again" } })
  t.equal(coco "Keypoint".num_keypoints, { { 1 }, { 0 } })
  t.equal(coco "Stuff".segmentation, { { 1.0, 2.0, 3.0, 4.0, 5.0, 6.0 }, { 1.0, 2.0, 3.0, 4.0, -1.0, -1.0 } })
  fails("is no JSON", D.CocoDataset, folder .. "/coco", folder .. "/coco/1.jpg")
  -- What has another form is told with its number and the file.
  local function bad(annotation, category)
    annotation.image_id = 5
    write("coco/bad.json", ms.json.encode { images = { { id = 5, file_name = "1.jpg" } }, annotations = { annotation },
      categories = { category or { id = 3, name = "car" } } })
    return D.CocoDataset, folder .. "/coco", folder .. "/coco/bad.json"
  end
  fails("annotation 0 of .*bad.json: bbox is no list of four numbers", bad { bbox = { 1, 2, 3 } })
  fails("annotation 0 of .*bad.json: category_id is no number", bad { bbox = { 1, 2, 3, 4 }, category_id = "car" })
  fails("annotation 0 of .*bad.json: segments_info is no list", bad { segments_info = 3 })
  fails("category 0 of .*bad.json has no name", bad({}, { id = 3 }))
end)

t.test("idx files under other names", function()
  local samples = "tests/data/samples/idx/"
  for _, kind in ipairs { "images-idx3-ubyte", "labels-idx1-ubyte" } do
    local content = assert(io.open(samples .. kind, "rb")):read "a"
    write("kmnist/t10k-" .. kind, content)
    write("kmnist/emnist-letters-test-" .. kind, content)
  end
  local count = D.KMnistDataset(folder .. "/kmnist", "test"):get_dataset_size()
  assert(count > 0)
  t.equal(D.EMnistDataset(folder .. "/kmnist", "letters", "test"):get_dataset_size(), count)
  fails("name must be one of", D.EMnistDataset, folder, "words")
end)

t.test("texts", function()
  write("t/a.jsonl", '{"x": 1, "s": "one", "v": [1.5, 2]}\n\n{"x": 2, "s": "two", "v": [3.5, 4]}\n')
  t.equal(all(D.JSONLinesDataset(folder .. "/t/a.jsonl", ordered)), { { x = 1, s = "one", v = { 1.5, 2.0 } }, { x = 2, s = "two", v = {
    3.5, 4.0 } } })
  t.equal(D.JSONLinesDataset(folder .. "/t/a.jsonl", { "s" }):get_col_names(), { "s" })
  write("t/b.jsonl", '{"x": 1}\n{"x": "no"}\n')
  fails("in line 2 of", D.JSONLinesDataset, folder .. "/t/b.jsonl")
  write("t/c.jsonl", '{"x": 1}\n{oops\n')
  fails("line 2 of .* is no JSON", D.JSONLinesDataset, folder .. "/t/c.jsonl")
  write("clue/a.json", '{"sentence1": "a", "sentence2": "b", "label": "1"}\n')
  t.equal(all(D.CLUEDataset(folder .. "/clue/a.json")), { { sentence1 = "a", sentence2 = "b", label = "1" } })
  fails("has no 'id'", D.CLUEDataset, folder .. "/clue/a.json", "AFQMC", "test")
  write("ag/train.csv", '"3","Title","Some, text"\n')
  write("ag/test.csv", '"4","Other","More"\n')
  t.equal(all(D.AGNewsDataset(folder .. "/ag", ordered)),
    { { index = "3", title = "Title", description = "Some, text" }, { index = "4", title = "Other", description = "More" } })
  for _, part in ipairs { "train/pos", "train/neg", "test/pos", "test/neg" } do write("imdb/" .. part .. "/0_1.txt", part) end
  t.equal(all(D.IMDBDataset(folder .. "/imdb", "train", ordered)), { { text = "train/neg", label = 0 }, { text = "train/pos", label = 1 } })
  t.equal(#all(D.IMDBDataset(folder .. "/imdb")), 4)
  for _, part in ipairs { "train", "valid", "test" } do
    write(("ptb/ptb.%s.txt"):format(part), part .. " one\n\n" .. part .. " two\n")
    write(("wiki/wiki.%s.tokens"):format(part), part .. " w\n")
  end
  t.equal(all(D.PennTreebankDataset(folder .. "/ptb", "valid", ordered)), { { text = "valid one" }, { text = "valid two" } })
  t.equal(#all(D.PennTreebankDataset(folder .. "/ptb")), 6)
  t.equal(all(D.WikiTextDataset(folder .. "/wiki", "test")), { { text = "test w" } })
  write("squad/dev-v2.0.json", ms.json.encode { data = { { paragraphs = { { context = "C", qas = {
    { question = "Q1", answers = { { text = "A", answer_start = 3 }, { text = "B", answer_start = 5 } } }, { question = "Q2",
      answers = {} },
  } } } } } })
  t.equal(all(D.SQuADDataset(folder .. "/squad", "dev", ordered)), {
    { context = "C", question = "Q1", text = { "A", "B" }, answer_start = { "3", "5" } }, { context = "C", question = "Q2", text = { "" },
      answer_start = { "-1" } },
  })
  fails("no questions for usage 'train'", D.SQuADDataset, folder .. "/squad", "train")
end)

t.test("sounds", function()
  local wav = assert(io.open("tests/data/samples/wav/mono16.wav", "rb")):read "a"
  write("speech/yes/ab12_nohash_0.wav", wav)
  write("speech/no/ab12_nohash_1.wav", wav)
  write("speech/testing_list.txt", "no/ab12_nohash_1.wav\n")
  write("speech/validation_list.txt", "")
  local ds = D.SpeechCommandsDataset(folder .. "/speech", "train")
  local row = ds:create_dict_iterator()()
  t.equal({ row.label, row.speaker_id, row.utterance_number:item(), row.waveform.shape[1] }, { "yes", "ab12", 0, 1 })
  assert(row.sample_rate:item() > 0 and row.waveform:abs():max():item() <= 1)
  t.equal(D.SpeechCommandsDataset(folder .. "/speech", "test"):create_dict_iterator()().label, "no")
  write("lj/metadata.csv", "LJ1|Dr. X|Doctor X\n")
  write("lj/wavs/LJ1.wav", wav)
  row = D.LJSpeechDataset(folder .. "/lj"):create_dict_iterator()()
  t.equal({ row.transcription, row.normalized_transcript }, { "Dr. X", "Doctor X" })
  for _, name in ipairs { "data_past_end", "truncated_fmt", "zero_channels" } do
    write("lj/wavs/LJ1.wav", assert(io.open("tests/data/samples/wav/REJECT_" .. name .. ".wav", "rb")):read "a")
    fails("DecodeSound: the WAV is damaged", all, D.LJSpeechDataset(folder .. "/lj"))
  end
end)

t.test("rows that are made up", function()
  D.config.set_seed(3)
  local ds = D.FakeImageDataset(20, { 4, 5, 3 }, 3, { shuffle = false })
  local first = all(ds)
  t.equal(first, all(ds))
  t.equal(#first, 20)
  for _, row in ipairs(first) do assert(row.label >= 0 and row.label < 3) end
  local schema = D.Schema()
  schema:add_column("a", ms.int32, { 2 })
  schema:add_column("s", "string")
  schema:add_column("b", "bool")
  local rows = all(D.RandomDataset(4, schema))
  t.equal({ #rows, #rows[1].a, #rows[1].s }, { 4, 2, 8 })
  assert(rows[1].s ~= rows[2].s)
  fails("a column 'a' already", schema.add_column, schema, "a", "int32")
  fails("de_type must be one of", schema.add_column, schema, "c", "int7")
  local other = D.Schema()
  other:from_json(schema:to_json())
  t.equal(ms.json.decode(other:to_json()), ms.json.decode(schema:to_json()))
  local padded = D.NumpySlicesDataset({ x = { 1, 2, 3 } }, { shuffle = false }):concat(D.PaddedDataset { { x = 9 } })
  t.equal(#all(padded), 4)
  fails("has no column 'x'", D.PaddedDataset, { { x = 1 }, { y = 2 } })
end)

t.test("no files at all", function()
  local data = require "lunaria.data"
  fails("MindDataset: the list of files is empty", data.mindrecords, {}, true, {})
  fails("MindDataset: the list of files is empty", data.mindrecords, { [0] = 1 }, false, { "a" })
  fails("TFRecordDataset: the list of files is empty", data.tfrecords, {}, {})
  for _, name in ipairs { "MindDataset", "TFRecordDataset", "TextFileDataset", "CSVDataset" } do
    local ok, message = pcall(D[name], {})
    assert(not ok and message:find(name, 1, true), message)
  end
end)

os.execute("rm -r " .. folder)
t.finish()
