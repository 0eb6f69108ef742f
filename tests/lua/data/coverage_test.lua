-- The names of MindSpore's data sets, samplers, pipelines, vision, text, audio, transforms and MindRecord: each exists, says what it is
-- and has an example. How many there are is printed; what is still open stands below: nothing may come to it.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local entries = require "lunaria.help.entries"

local areas = {
  { "sources", "P0", "ms.dataset", [[
    CSVDataset Cifar10Dataset GeneratorDataset ImageFolderDataset MindDataset MnistDataset NumpySlicesDataset TFRecordDataset
    TextFileDataset
  ]] },
  { "sources", "P1", "ms.dataset", [[
    AGNewsDataset CLUEDataset CelebADataset Cifar100Dataset CocoDataset EMnistDataset FakeImageDataset FashionMnistDataset IMDBDataset
    KMnistDataset LJSpeechDataset ManifestDataset PaddedDataset PennTreebankDataset RandomDataset SQuADDataset SpeechCommandsDataset
    VOCDataset WikiTextDataset
  ]] },
  { "sources", "P2", "ms.dataset", [[
    AmazonReviewDataset CMUArcticDataset Caltech101Dataset Caltech256Dataset CityscapesDataset CoNLL2000Dataset DBpediaDataset
    DIV2KDataset EnWik9Dataset FlickrDataset Flowers102Dataset Food101Dataset GTZANDataset IWSLT2016Dataset IWSLT2017Dataset
    KITTIDataset LFWDataset LSUNDataset LibriTTSDataset Multi30kDataset OBSMindDataset OmniglotDataset PhotoTourDataset
    Places365Dataset QMnistDataset RenderedSST2Dataset SBDataset SBUDataset SST2Dataset STL10Dataset SUN397Dataset SVHNDataset
    SemeionDataset SogouNewsDataset TedliumDataset UDPOSDataset USPSDataset WIDERFaceDataset YahooAnswersDataset YelpReviewDataset
    YesNoDataset
  ]] },
  { "samplers", "P0", "ms.dataset", "DistributedSampler RandomSampler SequentialSampler SubsetSampler zip" },
  { "samplers", "P1", "ms.dataset", [[
    DSCallback DatasetCache PKSampler Schema SubsetRandomSampler WaitedDSCallback WeightedRandomSampler compare deserialize serialize
    show sync_wait_for_dataset
  ]] },
  { "pipelines", "P0", "ms.dataset.Dataset", [[
    map batch shuffle repeat_ skip take filter split project rename zip concat create_dict_iterator create_tuple_iterator
    get_dataset_size get_batch_size output_shapes output_types reset set_dynamic_columns
  ]] },
  { "pipelines", "P1", "ms.dataset.Dataset", [[
    padded_batch bucket_batch_by_length flat_map sync_wait sync_update device_que save build_vocab apply get_class_indexing
    input_indexs close_pool
  ]] },
  { "settings", "P1", "ms.dataset.config", [[
    set_seed get_seed set_num_parallel_workers get_num_parallel_workers set_prefetch_size get_prefetch_size set_auto_num_workers
    get_auto_num_workers set_enable_autotune get_enable_autotune
  ]] },
  { "vision", "P0", "ms.dataset.vision", [[
    CenterCrop Decode HWC2CHW HorizontalFlip Inter Normalize Pad RandomColorAdjust RandomCrop RandomCropDecodeResize
    RandomHorizontalFlip RandomResizedCrop Rescale Resize ToTensor
  ]] },
  { "vision", "P1", "ms.dataset.vision", [[
    AdjustBrightness AdjustContrast AdjustHue AdjustSaturation Affine AutoAugment AutoContrast ConvertColor Crop CutMixBatch CutOut
    Equalize Erase FiveCrop GaussianBlur Grayscale Invert MixUp MixUpBatch NormalizePad Perspective Posterize RandAugment RandomAffine
    RandomColor RandomErasing RandomGrayscale RandomPerspective RandomPosterize RandomRotation RandomSelectSubpolicy RandomSharpness
    RandomSolarize RandomVerticalFlip RgbToHsv Rotate SlicePatches Solarize TenCrop ToNumpy ToPIL TrivialAugmentWide UniformAugment
    VerticalFlip
  ]] },
  { "vision", "P2", "ms.dataset.vision", [[
    AdjustGamma AdjustSharpness AutoAugmentPolicy Border BoundingBoxAugment ConvertMode DecodeVideo HsvToRgb ImageBatchFormat
    ImageReadMode LinearTransformation PadToSize RandomAdjustSharpness RandomAutoContrast RandomCropWithBBox RandomEqualize
    RandomHorizontalFlipWithBBox RandomInvert RandomLighting RandomResize RandomResizeWithBBox RandomResizedCropWithBBox
    RandomVerticalFlipWithBBox ResizeWithBBox ResizedCrop SliceMode ToType VideoDecoder
  ]] },
  { "text", "P0", "ms.dataset.text", "BasicTokenizer BertTokenizer Lookup Vocab WhitespaceTokenizer" },
  { "text", "P1", "ms.dataset.text", [[
    AddToken CaseFold FastText GloVe JiebaTokenizer Ngram NormalizeUTF8 PythonTokenizer RegexReplace RegexTokenizer
    SentencePieceTokenizer SentencePieceVocab SlidingWindow ToNumber ToVectors Truncate TruncateSequencePair UnicodeCharTokenizer
    Vectors WordpieceTokenizer
  ]] },
  { "text", "P2", "ms.dataset.text", [[
    CharNGram FilterWikipediaXML JiebaMode NormalizeForm SPieceTokenizerLoadType SPieceTokenizerOutType SentencePieceModel
    UnicodeScriptTokenizer
  ]] },
  { "audio", "P1", "ms.dataset.audio", [[
    AmplitudeToDB Angle BandpassBiquad ComplexNorm Fade FrequencyMasking Gain GriffinLim HighpassBiquad InverseMelScale
    InverseSpectrogram LFCC LowpassBiquad MFCC Magphase MelScale MelSpectrogram MuLawDecoding MuLawEncoding PitchShift Resample
    SpectralCentroid Spectrogram TimeMasking TimeStretch Vol
  ]] },
  { "audio", "P2", "ms.dataset.audio", [[
    AllpassBiquad BandBiquad BandrejectBiquad BassBiquad Biquad BorderType ComputeDeltas Contrast DBToAmplitude DCShift DeemphBiquad
    DensityFunction DetectPitchFrequency Dither EqualizerBiquad FadeShape Filtfilt Flanger GainType Interpolation LFilter
    MaskAlongAxis MaskAlongAxisIID MelType Modulation NormMode NormType Overdrive PhaseVocoder Phaser ResampleMethod RiaaBiquad
    ScaleType SlidingWindowCmn TrebleBiquad Vad WindowType
  ]] },
  { "transforms", "P0", "ms.dataset.transforms", "Compose OneHot TypeCast" },
  { "transforms", "P1", "ms.dataset.transforms", [[
    Concatenate Duplicate Fill Mask PadEnd RandomApply RandomChoice RandomOrder Relational Slice Unique
  ]] },
  { "transforms", "P2", "ms.dataset.transforms", "Plugin" },
  { "records", "P0", "ms.mindrecord", "Cifar10ToMR FileReader FileWriter ImageNetToMR MnistToMR" },
  { "records", "P0", "ms.mindrecord.FileWriter", [[
    add_schema add_index write_raw_data commit open_for_append set_header_size set_page_size open_and_set_header
  ]] },
  { "records", "P0", "ms.mindrecord.FileReader", "get_next schema len close" },
  { "records", "P1", "ms.mindrecord", "Cifar100ToMR CsvToMR MindPage TFRecordToMR set_dec_mode set_enc_key set_enc_mode" },
  { "records", "P2", "ms.mindrecord", "FAILED SUCCESS" },
}
local open = {
  ["sources P2"] = [[
    AmazonReviewDataset CMUArcticDataset Caltech101Dataset Caltech256Dataset CityscapesDataset CoNLL2000Dataset DBpediaDataset
    DIV2KDataset EnWik9Dataset FlickrDataset Flowers102Dataset Food101Dataset GTZANDataset IWSLT2016Dataset IWSLT2017Dataset
    KITTIDataset LFWDataset LSUNDataset LibriTTSDataset Multi30kDataset OBSMindDataset OmniglotDataset PhotoTourDataset
    Places365Dataset QMnistDataset RenderedSST2Dataset SBDataset SBUDataset SST2Dataset STL10Dataset SUN397Dataset SVHNDataset
    SemeionDataset SogouNewsDataset TedliumDataset UDPOSDataset USPSDataset WIDERFaceDataset YahooAnswersDataset YelpReviewDataset
    YesNoDataset
  ]],
  ["vision P2"] = "DecodeVideo VideoDecoder",
  ["text P2"] = "CharNGram",
  ["audio P2"] = [[
    DensityFunction DetectPitchFrequency Dither Flanger Interpolation Modulation Overdrive Phaser SlidingWindowCmn Vad
  ]],
  ["transforms P2"] = "Plugin",
  ["records P2"] = "FAILED SUCCESS",
}

local function at(place)
  local value = ms
  for part in place:gmatch "[^%.]+" do value = part == "ms" and ms or value[part] end
  return value
end

-- Whether help knows what it is, with an example; the text about data sets speaks of their field.
local function told(place, name, value)
  if name == "input_indexs" then return ms.dataset.Dataset._doc:find(name, 1, true) end
  local entry = entries.names()[place .. "." .. name] or entries.of(value)
  return entry and entry.doc:find "%S" and #entry.examples > 0
end

local sums, found = { P0 = 0, P1 = 0, P2 = 0 }, { P0 = 0, P1 = 0, P2 = 0 }
for _, area in ipairs(areas) do
  local title, priority, place, names = table.unpack(area)
  t.test(("%s, %s of %s"):format(title, priority, place), function()
    local library, expected, missing, silent, count = at(place), {}, {}, {}, 0
    for name in (open[title .. " " .. priority] or ""):gmatch "%S+" do expected[name] = true end
    for name in names:gmatch "%S+" do
      count = count + 1
      local ok, value = pcall(function() return library[name] end)
      if not ok or value == nil then
        if not expected[name] then missing[#missing + 1] = name end
      else
        found[priority] = found[priority] + 1
        if expected[name] then missing[#missing + 1] = name .. " is there and still listed as open" end
        if not told(place, name, value) then silent[#silent + 1] = name end
      end
    end
    sums[priority] = sums[priority] + count
    t.equal(table.concat(missing, " "), "")
    t.equal(table.concat(silent, " "), "")
  end)
end
for _, priority in ipairs { "P0", "P1", "P2" } do
  print(("data sets and records, %s: %d of %d"):format(priority, found[priority], sums[priority]))
end
t.finish()
