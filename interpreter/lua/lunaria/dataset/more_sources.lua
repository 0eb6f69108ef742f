-- Sources of known data sets: folders and lists of pictures, and rows that are made up. Files are read when their row is.
local ms = require "lunaria"
local data = require "lunaria.data"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local config = require "lunaria.dataset.config"
local base = require "lunaria.dataset.dataset"
local files = require "lunaria.dataset.files"
require "lunaria.dataset.sources" -- which defines define_source
local samplers = require "lunaria.dataset.samplers"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check
local define = base.define_source
local folder_of, list_folder, text_of = files.folder_of, files.list_folder, files.text_of
local more = {}

local function json_of(where, path, text)
  local ok, value = pcall(ms.json.decode, text)
  if not ok then fail(where, ("%s is no JSON: %s"):format(path, tostring(value):gsub("^.-: ", ""))) end
  return value
end

-- Lines that are not empty, each with its number.
local function lines_of(where, path)
  local list, number = {}, 0
  for line in (text_of(where, path) .. "\n"):gmatch "(.-)\r?\n" do
    number = number + 1
    if line ~= "" then list[#list + 1] = { line, number } end
  end
  return list
end

-- The transforms that turn these columns into pictures, where a.decode asks for it.
local function decoding(where, a, columns)
  if not check.boolean(where, "decode", a.decode) then return nil end
  local list, decode = {}, require("lunaria.dataset.vision").Decode()._transform
  for _, column in ipairs(columns) do list[column] = decode end
  return list
end

local picture_endings = { ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp" }
local decode_doc = [[ decode: the picture as a tensor of its pixels, else the bytes of its file.]]

local function endings_of(where, extensions)
  if extensions == nil then return picture_endings end
  if type(extensions) ~= "table" or #extensions == 0 then fail(where,
    "extensions must be a list such as { \".jpg\" }, got " .. describe(extensions)) end
  return extensions
end

local function ends_in(name, endings)
  name = name:lower()
  for _, ending in ipairs(endings) do
    if name:sub(-#ending) == ending:lower() then return true end
  end
  return false
end

-- Files below a folder, in order, with these endings.
local function files_below(where, path, endings, list)
  for _, name in ipairs(list_folder(where, path)) do
    local inner = path .. "/" .. name
    if ms.io.list_folder(inner) then
      files_below(where, inner, endings, list)
    elseif ends_in(name, endings) then
      list[#list + 1] = inner
    end
  end
  return list
end

-- The numbers of classes by their names: as given, or in the order of the names.
local function indexing(where, names, given)
  if given ~= nil then
    if type(given) ~= "table" then fail(where, "class_indexing must be a table of numbers by name, got " .. describe(given)) end
    for name, number in pairs(given) do check.not_negative(where, "class_indexing." .. tostring(name), number) end
    return given
  end
  local list, seen = {}, {}
  for _, name in ipairs(names) do
    if not seen[name] then list[#list + 1], seen[name] = name, true end
  end
  table.sort(list)
  local index = {}
  for i, name in ipairs(list) do index[name] = i - 1 end
  return index
end

local function labels(name, list)
  return data.table(name, { "label" }, { ms.tensor(list, ms.int32) })
end

-- The columns image and label of files.
local function pictures(where, a, paths, numbers, classes)
  if #paths == 0 then fail(where, "there is no picture") end
  return data.files("image", paths, labels(where, numbers)), { _decode = decoding(where, a, { 1 }), _classes = classes }
end

define("ImageFolderDataset", "dataset_dir, extensions=nil, class_indexing=nil, decode=false, ", [[
Pictures in a folder for each class: the columns image and label, int32. dataset_dir: the folder of the folders. extensions: the ends
of names that are pictures, else
those of JPEG, PNG, BMP and others. class_indexing: the numbers of classes by the names of their folders, others are left out;
without it in the order of the names.]]
  .. decode_doc .. [[


    > (pcall(ms.dataset.ImageFolderDataset, "/no/such/folder"))
    false]], true, function(a, name)
  local folder, endings = folder_of(name, "dataset_dir", a.dataset_dir), endings_of(name, a.extensions)
  local classes = {}
  for _, class_name in ipairs(list_folder(name, folder)) do
    if ms.io.list_folder(folder .. "/" .. class_name) then classes[#classes + 1] = class_name end
  end
  local index, paths, numbers = indexing(name, classes, a.class_indexing), {}, {}
  for _, class_name in ipairs(classes) do
    if index[class_name] then
      for _, path in ipairs(files_below(name, folder .. "/" .. class_name, endings, {})) do
        paths[#paths + 1], numbers[#numbers + 1] = path, index[class_name]
      end
    end
  end
  return pictures(name, a, paths, numbers, index)
end)

define("ManifestDataset", "dataset_file, usage='train', class_indexing=nil, decode=false, ", [[
Pictures of a manifest: a file with a line of JSON for each, {"source": path, "usage": "TRAIN", "annotation": [{"name": class}]}. The
columns image and label, int32. dataset_file:
its path. usage: "train", "eval" or "inference". class_indexing: the numbers of classes by name, others are left out.]] .. decode_doc .. [[


    > (pcall(ms.dataset.ManifestDataset, "/no/such.manifest"))
    false]], true, function(a, name)
  local path = folder_of(name, "dataset_file", a.dataset_file)
  local usage = check.choice(name, "usage", a.usage, { "train", "eval", "inference" })
  local paths, names = {}, {}
  for _, line in ipairs(lines_of(name, path)) do
    local row = json_of(name, ("line %d of %s"):format(line[2], path), line[1])
    local annotation = type(row) == "table" and type(row.annotation) == "table" and row.annotation[1] or {}
    if type(row) ~= "table" or type(row.source) ~= "string" or type(row.usage) ~= "string" then
      fail(name, ("line %d of %s has no source or no usage"):format(line[2], path))
    end
    if row.usage:lower() == usage then
      paths[#paths + 1] = row.source
      names[#names + 1] = annotation.name or fail(name, ("line %d of %s has no annotation with a name"):format(line[2], path))
    end
  end
  local index, kept, numbers = indexing(name, names, a.class_indexing), {}, {}
  for i, source in ipairs(paths) do
    if index[names[i]] then kept[#kept + 1], numbers[#numbers + 1] = source, index[names[i]] end
  end
  return pictures(name, a, kept, numbers, index)
end)

define("CelebADataset", "dataset_dir, usage='all', decode=false, extensions=nil, ", [[
CelebA: the columns image and attr, 40 int32 that are 0 or 1. dataset_dir: the folder of list_attr_celeba.txt,
list_eval_partition.txt and the folder img_align_celeba. usage:
"train", "valid", "test" or "all". extensions: the ends of names that are pictures.]] .. decode_doc .. [[


    > (pcall(ms.dataset.CelebADataset, "/no/such/folder"))
    false]], true, function(a, name)
  local folder = folder_of(name, "dataset_dir", a.dataset_dir)
  local usage = check.choice(name, "usage", a.usage, { "all", "train", "valid", "test" })
  local endings, wanted, part = endings_of(name, a.extensions), ({ train = "0", valid = "1", test = "2" })[usage], {}
  if wanted then
    for _, line in ipairs(lines_of(name, folder .. "/list_eval_partition.txt")) do
      local file, number = line[1]:match "^(%S+)%s+(%d+)"
      if file then part[file] = number end
    end
  end
  local paths, rows = {}, {}
  local path = folder .. "/list_attr_celeba.txt"
  for i, line in ipairs(lines_of(name, path)) do
    if i > 2 then
      local values, file = {}, line[1]:match "^%S+"
      for value in line[1]:sub(#file + 1):gmatch "%S+" do values[#values + 1] = value == "1" and 1 or 0 end
      if #values ~= 40 then fail(name, ("line %d of %s has %d attributes, not 40"):format(line[2], path, #values)) end
      if (not wanted or part[file] == wanted) and ends_in(file, endings) then
        paths[#paths + 1], rows[#rows + 1] = folder .. "/img_align_celeba/" .. file, values
      end
    end
  end
  if #paths == 0 then fail(name, ("there is no picture for usage '%s' in %s"):format(usage, folder)) end
  return data.files("image", paths, data.table(name, { "attr" }, { ms.tensor(rows, ms.int32) })), { _decode = decoding(name, a, { 1 }) }
end)

-- A source of a list of rows, whose values may have other shapes in each row, beside a file for each.
local function with_rows(where, ds, a, columns, paths, names, rows, classes)
  local records = data.files(columns[1], paths, data.range("\0row", #paths))
  local node = data.source(records, samplers.choose(where, records, a, true))
  if a.decode then
    local decode = decoding(where, a, { 1 })
    node = data.transforms(node, { decode[1] }, { 0 }, { columns[1] }, 0)
  end
  node = data.map(node, where, function(index) return table.unpack(rows[index:item() + 1], 1, #names) end, { 1 }, names, 0)
  base.init(ds, a.cache and base.cached(where, node, a.cache) or node)
  ds._operation, ds._arguments, ds._classes = where, { a }, classes
end

local common = "num_samples=nil, num_parallel_workers=nil, shuffle=nil, sampler=nil, num_shards=nil, shard_id=nil, cache=nil"
local common_doc = [[ num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id and cache as in other sources.]]

local function of_boxes(name, signature, doc, setup)
  local text, example = doc:match "^(.-)(\n\n    > .*)$"
  local source = class.define(base.class, name, signature .. common, text .. common_doc .. example)
  function source:setup(a) setup(self, a, name) end
  more[name] = source
end

local function tensor(list, dtype, width)
  if #list == 0 then return ms.zeros(width and { 0, width } or { 0 }, dtype) end
  return ms.tensor(list, dtype)
end

local coco_columns = {
  Detection = { "bbox", "category_id", "iscrowd" }, Stuff = { "segmentation", "iscrowd" }, Keypoint = { "keypoints", "num_keypoints" },
  Panoptic = { "bbox", "category_id", "iscrowd", "area" }, Captioning = { "captions" },
}

local function are_numbers(list)
  if type(list) ~= "table" then return false end
  for _, number in ipairs(list) do
    if type(number) ~= "number" then return false end
  end
  return next(list) == nil or #list > 0
end

-- What is wrong with an annotation in the way that COCO's files have them, or nil.
local function coco_problem(one)
  if type(one) ~= "table" then return "it is no object" end
  for _, field in ipairs { "category_id", "iscrowd", "area", "num_keypoints" } do
    if one[field] ~= nil and type(one[field]) ~= "number" then return field .. " is no number" end
  end
  if one.bbox ~= nil and not (are_numbers(one.bbox) and #one.bbox == 4) then return "bbox is no list of four numbers" end
  if one.keypoints ~= nil and not are_numbers(one.keypoints) then return "keypoints is no list of numbers" end
  if one.caption ~= nil and type(one.caption) ~= "string" then return "caption is no text" end
  -- A table with counts in its place are the runs of a mask, which no column has.
  for _, polygon in ipairs(type(one.segmentation) == "table" and one.segmentation or {}) do
    if not are_numbers(polygon) then return "segmentation has no lists of numbers" end
  end
end

-- The annotations of one picture as the values of a row.
local function coco_row(task, list)
  local boxes, categories, crowd, areas, points, counts, captions, segments = {}, {}, {}, {}, {}, {}, {}, {}
  for i, one in ipairs(list) do
    boxes[i], categories[i], crowd[i], areas[i] = one.bbox or { 0, 0, 0, 0 }, { one.category_id or 0 }, { one.iscrowd or 0 }, {
      one.area or 0 }
    points[i], counts[i], captions[i] = one.keypoints or {}, { one.num_keypoints or 0 }, one.caption or ""
    for _, polygon in ipairs(type(one.segmentation) == "table" and one.segmentation or {}) do
      if type(polygon) == "table" then segments[#segments + 1] = polygon end
    end
  end
  if task == "Captioning" then return { captions } end
  if task == "Keypoint" then return { tensor(points, ms.float32), tensor(counts, ms.int32, 1) } end
  if task == "Stuff" then
    -- Polygons have as many points as they like: shorter ones are filled up with -1.
    local most = 0
    for _, polygon in ipairs(segments) do most = math.max(most, #polygon) end
    for _, polygon in ipairs(segments) do
      for k = #polygon + 1, most do polygon[k] = -1 end
    end
    return { tensor(segments, ms.float32, 0), tensor(crowd, ms.int32, 1) }
  end
  local row = { tensor(boxes, ms.float32, 4), tensor(categories, ms.int32, 1), tensor(crowd, ms.int32, 1) }
  if task == "Panoptic" then row[4] = tensor(areas, ms.int32, 1) end
  return row
end

-- Lists of annotations by their pictures.
local function coco_annotations(where, path, annotations)
  local by_image = {}
  for i, one in ipairs(annotations) do
    if type(one) ~= "table" or one.image_id == nil then fail(where, ("annotation %d of %s has no image_id"):format(i - 1, path)) end
    by_image[one.image_id] = by_image[one.image_id] or {}
    local list = by_image[one.image_id]
    -- Those of panoptic files have the segments of a picture.
    local segments = one.segments_info == nil and { one } or one.segments_info
    local problem = type(segments) ~= "table" and "segments_info is no list"
    for _, segment in ipairs(problem and {} or segments) do
      problem = problem or coco_problem(segment)
      if not problem and list[1] and segment.keypoints and list[1].keypoints and #segment.keypoints ~= #list[1].keypoints then
        problem = "keypoints has another number than that before of its picture"
      end
      list[#list + 1] = segment
    end
    if problem then fail(where, ("annotation %d of %s: %s"):format(i - 1, path, problem)) end
  end
  return by_image
end

of_boxes("CocoDataset", "dataset_dir, annotation_file, task='Detection', decode=false, ", [[
COCO: the column image and those of its task: "Detection": bbox (x, y, width, height), category_id, iscrowd; "Stuff": segmentation,
iscrowd; "Keypoint": keypoints,
num_keypoints; "Panoptic": bbox, category_id, iscrowd, area; "Captioning": captions. dataset_dir: the folder of the pictures.
annotation_file: the JSON file. Pictures without
an annotation are left out.]] .. decode_doc .. [[


    > (pcall(ms.dataset.CocoDataset, "/no/such/folder", "/no/such.json"))
    false]], function(self, a, name)
  local folder, path = folder_of(name, "dataset_dir", a.dataset_dir), folder_of(name, "annotation_file", a.annotation_file)
  local task = check.choice(name, "task", a.task, { "Detection", "Stuff", "Keypoint", "Panoptic", "Captioning" })
  local all = json_of(name, path, text_of(name, path))
  if type(all) ~= "table" or type(all.images) ~= "table" or type(all.annotations) ~= "table" then
    fail(name, ("%s has no lists of images and annotations"):format(path))
  end
  local by_image, classes = coco_annotations(name, path, all.annotations), {}
  for i, category in ipairs(type(all.categories) == "table" and all.categories or {}) do
    if type(category) ~= "table" or type(category.name) ~= "string" then
      fail(name, ("category %d of %s has no name"):format(i - 1, path))
    end
    classes[category.name] = category.id
  end
  local paths, rows = {}, {}
  for i, image in ipairs(all.images) do
    if type(image) ~= "table" or type(image.file_name) ~= "string" then fail(name, ("image %d of %s has no file_name"):format(i - 1,
      path)) end
    local list = image.id ~= nil and by_image[image.id]
    if list then paths[#paths + 1], rows[#rows + 1] = folder .. "/" .. image.file_name, coco_row(task, list) end
  end
  if #paths == 0 then fail(name, ("%s has no picture with an annotation"):format(path)) end
  with_rows(name, self, a, { "image" }, paths, coco_columns[task], rows, classes)
end)

-- The objects of an annotation of VOC, which is XML without attributes.
local function voc_objects(where, path)
  local list = {}
  for object in text_of(where, path):gmatch "<object>(.-)</object>" do
    local function field(name) return object:match("<" .. name .. ">%s*(.-)%s*</" .. name .. ">") end
    local one = { name = field "name", difficult = tonumber(field "difficult" or 0), truncated = tonumber(field "truncated" or 0) }
    local box = object:match "<bndbox>(.-)</bndbox>" or ""
    local function edge(name) return tonumber(box:match("<" .. name .. ">%s*(.-)%s*</" .. name .. ">") or "") end
    local x0, y0, x1, y1 = edge "xmin", edge "ymin", edge "xmax", edge "ymax"
    if not (one.name and x0 and y0 and x1 and y1) then fail(where, path .. " has an object without a name or a box") end
    if not (one.difficult and one.truncated) then fail(where, path .. " has an object whose difficult or truncated is no number") end
    one.box = { x0, y0, x1 - x0, y1 - y0 }
    list[#list + 1] = one
  end
  return list
end

of_boxes("VOCDataset", "dataset_dir, task='Segmentation', usage='train', class_indexing=nil, decode=false, ", [[
PASCAL VOC. task "Segmentation": the columns image and target, both pictures; "Detection": image, bbox (x, y, width, height), label,
difficult and truncate. dataset_dir: the folder
of JPEGImages, Annotations, SegmentationClass and ImageSets. usage: the name of a list in ImageSets. class_indexing: the numbers of
classes by name, others are left out.]]
  .. decode_doc .. [[


    > (pcall(ms.dataset.VOCDataset, "/no/such/folder"))
    false]], function(self, a, name)
  local folder = folder_of(name, "dataset_dir", a.dataset_dir)
  local task = check.choice(name, "task", a.task, { "Segmentation", "Detection" })
  if type(a.usage) ~= "string" or a.usage:find "/" then fail(name, "usage must be the name of a list, got " .. describe(a.usage)) end
  local list = lines_of(name, ("%s/ImageSets/%s/%s.txt"):format(folder, task == "Detection" and "Main" or "Segmentation", a.usage))
  local paths, targets = {}, {}
  for i, line in ipairs(list) do
    local stem = line[1]:match "^%S+"
    paths[i] = folder .. "/JPEGImages/" .. stem .. ".jpg"
    targets[i] = task == "Detection" and voc_objects(name, folder .. "/Annotations/" .. stem .. ".xml") or folder .. "/SegmentationClass/"
      .. stem .. ".png"
  end
  if #paths == 0 then fail(name, "the list of pictures is empty") end
  if task == "Segmentation" then
    local records = data.files("image", paths, data.files("target", targets))
    local node = data.source(records, samplers.choose(name, records, a, true))
    for column, transform in pairs(decoding(name, a, { 1, 2 }) or {}) do
      node = data.transforms(node, { transform }, { column - 1 }, { ({ "image", "target" })[column] }, 0)
    end
    base.init(self, a.cache and base.cached(name, node, a.cache) or node)
    self._operation, self._arguments = name, { a }
    return
  end
  local names = {}
  for _, objects in ipairs(targets) do
    for _, object in ipairs(objects) do names[#names + 1] = object.name end
  end
  local index, rows = indexing(name, names, a.class_indexing), {}
  for i, objects in ipairs(targets) do
    local boxes, numbers, difficult, truncate = {}, {}, {}, {}
    for _, object in ipairs(objects) do
      if index[object.name] then
        local k = #boxes + 1
        boxes[k], numbers[k], difficult[k], truncate[k] = object.box, { index[object.name] }, { object.difficult }, { object.truncated }
      end
    end
    rows[i] = { tensor(boxes, ms.float32, 4), tensor(numbers, ms.int32, 1), tensor(difficult, ms.int32, 1), tensor(truncate, ms.int32, 1) }
  end
  with_rows(name, self, a, { "image" }, paths, { "bbox", "label", "difficult", "truncate" }, rows, index)
end)

-- Rows that a function of the row's number makes up; random operators draw from the stream of the row.
local function made_up(where, ds, a, rows, names, make, shuffled)
  local records = data.range(names[1], rows)
  local node = data.source(records, samplers.choose(where, records, a, shuffled))
  node = data.map(node, where, function(index) return make(index:item()) end, { 0 }, names, config.get_seed())
  base.init(ds, a.cache and base.cached(where, node, a.cache) or node)
  ds._operation, ds._arguments = where, { a }
end

of_boxes("FakeImageDataset", "num_images=1000, image_size=nil, num_classes=10, base_seed=0, ", [[
Pictures of noise, for trials: the columns image, uint8 of shape image_size, without it (224, 224, 3), and label, int32, below
num_classes. num_images: how many. base_seed: which
ones.

    > ms.dataset.FakeImageDataset(3, { 4, 4, 3 }):create_tuple_iterator()().shape
    (4, 4, 3)]], function(self, a, name)
  local count = check.positive(name, "num_images", a.num_images)
  local size = check.sizes(name, "image_size", a.image_size or { 224, 224, 3 }, 3, 1)
  local classes, seed = check.positive(name, "num_classes", a.num_classes), check.not_negative(name, "base_seed", a.base_seed)
  made_up(name, self, a, count, { "image", "label" }, function(i)
    local state = ms.get_rng_state()
    ms.set_seed(seed * 1000003 + i)
    local image = ms.ops.randint(0, 256, size):astype(ms.uint8)
    local label = ms.ops.randint(0, classes, { 1 }):reshape({}):astype(ms.int32)
    ms.set_rng_state(state)
    return image, label
  end, true)
end)

local Schema = class.define(nil, "Schema", "schema_file=nil", [[
Names, types and shapes of columns: an argument schema of RandomDataset. schema_file: a JSON file {"columns": {"x": {"type":
"float32", "shape": [2]}}}, or
none.

    > schema = ms.dataset.Schema()
    > schema:add_column("x", ms.float32, { 2 })
    > schema:to_json()
    {"columns":{"x":{"rank":1,"shape":[2],"type":"float32"}},"datasetType":"Unknown","numRows":0}]])
more.Schema = Schema

local schema_types = { "bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "string" }

local function type_name(where, de_type)
  local text = tostring(de_type):lower():gsub("^bool_$", "bool")
  return check.choice(where, "de_type", text, schema_types)
end

function Schema:setup(a)
  self._columns, self._names = {}, {}
  if a.schema_file ~= nil then self:from_json(text_of("Schema", folder_of("Schema", "schema_file", a.schema_file))) end
end

--- Adds a column: its name, its type de_type, a dtype or its name, and its shape, a list of sizes; a number without.
---     > schema = ms.dataset.Schema()
---     > schema:add_column("label", "int32")
function Schema:add_column(name, de_type, shape)
  de_type, shape = arguments.named("add_column", { "de_type", "shape" }, de_type, shape)
  if type(name) ~= "string" or name == "" then fail("add_column", "name must be a text, got " .. describe(name)) end
  if self._columns[name] then fail("add_column", ("there is a column '%s' already"):format(name)) end
  if shape ~= nil and type(shape) ~= "table" then fail("add_column", "shape must be a list of sizes, got " .. describe(shape)) end
  for i, size in ipairs(shape or {}) do check.positive("add_column", ("shape[%d]"):format(i), size) end
  self._columns[name] = { type = type_name("add_column", de_type), shape = shape or {} }
  self._names[#self._names + 1] = name
end

--- Adds columns: a table of { type =, shape = } by name, columns.
---     > schema = ms.dataset.Schema()
---     > schema:parse_columns { x = { type = "int64" } }
function Schema:parse_columns(columns)
  if type(columns) ~= "table" or next(columns) == nil then fail("parse_columns",
    "columns must be a table by name, got " .. describe(columns)) end
  local names = {}
  for name in pairs(columns) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local column = columns[name]
    if type(column) ~= "table" or not column.type then fail("parse_columns", ("column '%s' has no type"):format(name)) end
    self:add_column(name, column.type, column.shape)
  end
end

--- Adds the columns of a text in JSON, json_obj, or of the table that it is.
---     > ms.dataset.Schema():from_json('{"columns": {"x": {"type": "int32"}}}')
function Schema:from_json(json_obj)
  local value = type(json_obj) == "string" and json_of("from_json", "json_obj", json_obj) or json_obj
  if type(value) ~= "table" or type(value.columns) ~= "table" then fail("from_json", "columns are missing") end
  self:parse_columns(value.columns)
  self._rows = math.tointeger(value.numRows)
end

--- The schema as a text in JSON.
---     > ms.dataset.Schema():to_json() --> {"columns":{},"datasetType":"Unknown","numRows":0}
function Schema:to_json()
  local parts = {}
  for _, name in ipairs(self._names) do
    local column = self._columns[name]
    parts[#parts + 1] = ('%s:{"rank":%d,"shape":[%s],"type":"%s"}'):format(ms.json.encode(name), #column.shape, table.concat(column.shape,
      ","), column.type)
  end
  return ('{"columns":{%s},"datasetType":"Unknown","numRows":%d}'):format(table.concat(parts, ","), self._rows or 0)
end

local function random_value(column)
  if column.type == "string" then return ("%08x"):format(ms.ops.randint(0, 0x7fffffff, { 1 }):item()) end
  if column.type:find "float" then return ms.ops.rand(column.shape):astype(ms[column.type]) end
  if column.type == "bool" then return ms.ops.randint(0, 2, column.shape):astype(ms.bool_) end
  return ms.ops.randint(0, column.type:find "8" and 100 or 1000, column.shape):astype(ms[column.type])
end

of_boxes("RandomDataset", "total_rows=nil, schema=nil, columns_list=nil, ", [[
Random rows, for trials. schema: a Schema or a file of one, without it a column x of float32 with 4 numbers. total_rows: how many,
without it the number that the schema says, or
100. columns_list: the columns of the schema that are taken.

    > schema = ms.dataset.Schema()
    > schema:add_column("x", ms.float32, { 2 })
    > ms.dataset.RandomDataset(5, schema):batch(5):create_tuple_iterator()().shape
    (5, 2)]], function(self, a, name)
  local schema = a.schema
  if type(schema) == "string" then schema = Schema(schema) end
  if schema == nil then
    schema = Schema()
    schema:add_column("x", "float32", { 4 })
  end
  if not class.is_a(schema, Schema) then fail(name, "schema must be a Schema or a path, got " .. describe(schema)) end
  local names = a.columns_list and base.name_list(name, "columns_list", a.columns_list) or schema._names
  for _, column in ipairs(names) do
    if not schema._columns[column] then fail(name, ("the schema has no column '%s'"):format(column)) end
  end
  if #names == 0 then fail(name, "the schema has no columns") end
  local rows = a.total_rows ~= nil and check.positive(name, "total_rows", a.total_rows) or schema._rows or 100
  made_up(name, self, a, rows, names, function()
    local values = {}
    for i, column in ipairs(names) do values[i] = random_value(schema._columns[column]) end
    return table.unpack(values, 1, #names)
  end, false)
end)

local PaddedDataset = class.define(base.class, "PaddedDataset", "padded_samples", [[
Rows that fill up others, so that every program of several gets the same number: padded_samples is a list of tables, the value of
each column by its name.

    > ds = ms.dataset.PaddedDataset { { x = 7 }, { x = 8 } }
    > ds:get_dataset_size()
    2]])
more.PaddedDataset = PaddedDataset

function PaddedDataset:setup(a)
  local name, rows = "PaddedDataset", a.padded_samples
  if type(rows) ~= "table" or type(rows[1]) ~= "table" then fail(name,
    "padded_samples must be a list of tables, got " .. describe(rows)) end
  local names = {}
  for column in pairs(rows[1]) do names[#names + 1] = column end
  table.sort(names)
  for i, row in ipairs(rows) do
    for _, column in ipairs(names) do
      if type(row) ~= "table" or row[column] == nil then fail(name, ("padded_samples[%d] has no column '%s'"):format(i,
        tostring(column))) end
    end
  end
  made_up(name, self, {}, #rows, base.name_list(name, "the columns of padded_samples", names), function(i)
    local values = {}
    for k, column in ipairs(names) do values[k] = rows[i + 1][column] end
    return table.unpack(values, 1, #names)
  end, false)
end

return more
