#include "core/run/observer.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/operator/op.h"

namespace lunaria {
namespace {

class Counter final : public Observer {
  public:
    explicit Counter(int& ends) : Observer(false), ends_(ends) { open(); }

  private:
    void begin(const Op&, std::span<const Value>) override {}
    void end(const Op&, std::span<const Value>, const Value*) override { ++ends_; }
    int& ends_;
};

}  // namespace

TEST(Observer, may_go_while_a_call_runs) {
    int outer = 0, middle = 0, inner = 0;
    auto first = std::make_unique<Counter>(outer), second = std::make_unique<Counter>(middle),
         third = std::make_unique<Counter>(inner);
    const Op& op = registry().get("add");
    {
        Observer::Call call(op, {});
        Observer::Call within(op, {});
        third.reset();
        first.reset();
        within.done(Value());
        call.done(Value());
    }
    EXPECT_EQ(middle, 2);
    EXPECT_EQ(outer + inner, 0);
    second.reset();
    EXPECT_EQ(Observer::current(), nullptr);
}

}  // namespace lunaria
