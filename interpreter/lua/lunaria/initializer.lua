return require("lunaria.common.initializer").initializer
