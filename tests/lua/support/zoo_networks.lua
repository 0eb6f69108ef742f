-- Networks of the zoo, small where they can be, as a list of { name, network, input }.
local ms = require "lunaria"

local list = {}
local function zoo(name) return dofile("notebooks/zoo/" .. name .. ".lua") end
local function add(name, net, x)
  net:set_train(false)
  list[#list + 1] = { name, net, x }
end

ms.set_seed(7)
local picture, tokens = ms.randn { 2, 3, 64, 64 }, ms.randint(0, 50, { 2, 7 })
local tiny = { vocabulary = 50, length = 16, width = 8, layers = 2, heads = 2 }
add("lenet", zoo("lenet").lenet5(10, { pad = 2 }), ms.randn { 2, 1, 28, 28 })
add("resnet18", zoo("resnet").resnet18(5), picture)
add("resnet50", zoo("resnet").resnet50(5), picture)
add("mobilenet_v2", zoo("mobilenet_v2").mobilenet_v2(5), picture)
add("alexnet", zoo("alexnet").alexnet(5), picture)
add("gpt2", zoo("gpt2").gpt2(tiny), tokens)
add("bert", zoo("bert").bert(tiny), tokens)
add("vit", zoo("vit").vit_b_16 { classes = 5, picture = 64, part = 16, width = 8, layers = 2, heads = 2 }, picture)
add("unet", zoo("unet").unet(3, 2, 8), picture)
add("yolo", zoo("yolo").yolov3_tiny(5), picture)
add("lstm", zoo("lstm").classifier { vocabulary = 50, width = 8, hidden = 8, classes = 2 }, tokens)
add("ssd", zoo("ssd").ssd300(5), ms.randn { 1, 3, 300, 300 })
add("generator", zoo("dcgan").generator(), ms.randn { 2, 100, 1, 1 })
add("discriminator", zoo("dcgan").discriminator(), picture)

return list
