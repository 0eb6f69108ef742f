#include "jit/vm/plain_host.h"

#include <gtest/gtest.h>

namespace lunaria::testing {
namespace {

using Table = vm::PlainHost::Table;

std::string keys_of(const Table& t) {
    std::string text;
    for (Value key = t.next(Value()); !key.is_nil(); key = t.next(key)) text += to_string(key) + " ";
    return text;
}

TEST(PlainHostTest, keys_keep_the_order_in_which_they_came) {
    Table t;
    for (const char* key : {"c", "a", "b"}) t.set(Value(key), Value(1));
    EXPECT_EQ(keys_of(t), "\"c\" \"a\" \"b\" ");
    t.set(Value("a"), Value());
    EXPECT_EQ(keys_of(t), "\"c\" \"b\" ");
    t.set(Value("a"), Value(2));
    EXPECT_EQ(t.get(Value("a")).integer(), 2);
}

TEST(PlainHostTest, a_table_may_be_emptied_while_it_is_gone_through) {
    Table t;
    for (int64_t i = 1; i <= 100; ++i) t.set(Value(i), Value(i));
    int count = 0;
    for (Value key = t.next(Value()); !key.is_nil(); key = t.next(key), ++count) t.set(key, Value());
    EXPECT_EQ(count, 100);
    EXPECT_TRUE(t.next(Value()).is_nil());
    for (int64_t i = 1; i <= 40; ++i) t.set(Value(-i), Value(i));
    EXPECT_EQ(t.get(Value(-40)).integer(), 40);
}

TEST(PlainHostTest, a_float_that_is_an_integer_is_that_key) {
    Table t;
    t.set(Value(2.0), Value("two"));
    EXPECT_EQ(t.get(Value(int64_t{2})).string(), "two");
    EXPECT_TRUE(t.get(Value(2.5)).is_nil());
    EXPECT_THROW(t.set(Value(), Value(1)), Error);
    EXPECT_THROW(t.set(Value(std::nan("")), Value(1)), Error);
}

TEST(PlainHostTest, the_length_is_that_of_the_list_from_1_on) {
    Table t;
    EXPECT_EQ(t.length(), 0);
    for (int64_t i = 1; i <= 37; ++i) {
        t.set(Value(i), Value(true));
        EXPECT_EQ(t.length(), i);
    }
    t.set(Value("name"), Value(1));
    t.set(Value(int64_t{37}), Value());
    EXPECT_EQ(t.length(), 36);
}

TEST(PlainHostTest, chains_of_metatables_are_followed_to_their_end) {
    vm::PlainHost host;
    const Value last = vm::PlainHost::table({}), meta = vm::PlainHost::table({}),
                object = vm::PlainHost::table({}, meta);
    vm::object_as<Table>(meta)->set(Value("__newindex"), last);
    const vm::Field field = host.find_new_field(object, Value("x"));
    EXPECT_TRUE(field.raw);
    EXPECT_EQ(vm::identity_of(field.holder), vm::identity_of(last));
    // A table that is its own metatable has no end.
    const Value own = vm::PlainHost::table({});
    for (const char* event : {"__index", "__newindex"}) vm::object_as<Table>(own)->set(Value(event), own);
    vm::object_as<Table>(own)->metatable = own;
    EXPECT_FALSE(host.find_field(own, Value("x")).raw);
    EXPECT_FALSE(host.find_new_field(own, Value("x")).raw);
}

TEST(PlainHostTest, all_of_a_table_moves_into_another) {
    const Value meta = vm::PlainHost::table({});
    Table from, to;
    from.set(Value("a"), Value(1));
    from.metatable = meta;
    to.set(Value("b"), Value(2));
    to.take(from);
    EXPECT_EQ(keys_of(to), "\"a\" ");
    EXPECT_EQ(keys_of(from), "");
    EXPECT_EQ(to.metatable.object(), meta.object());
    EXPECT_TRUE(from.metatable.is_nil());
}

TEST(PlainHostTest, functions_of_the_outside_are_called_by_name_and_fail_with_their_errors) {
    vm::PlainHost host;
    const Value f = vm::PlainHost::function("halve", Native::pure, [](std::span<const Value> args) {
        if (args[0].integer() % 2) throw argument_error("halve", "odd");
        return vm::Values{Value(args[0].integer() / 2)};
    });
    EXPECT_EQ(host.call(f, std::vector<Value>{Value(int64_t{8})})[0].integer(), 4);
    EXPECT_EQ(host.describe(f), "function 'halve'");
    const vm::Host::Protected outcome =
        host.call_protected([&] { host.call(f, std::vector<Value>{Value(int64_t{7})}); });
    EXPECT_FALSE(outcome.ok);
    EXPECT_NE(outcome.error.string().find("halve: odd"), std::string::npos);
}

}  // namespace
}  // namespace lunaria::testing
