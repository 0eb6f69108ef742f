return require("lunaria").dataset.vision
