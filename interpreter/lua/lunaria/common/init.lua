-- ms.common: what MindSpore keeps there.
return { initializer = require "lunaria.common.initializer" }
