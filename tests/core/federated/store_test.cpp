#include "core/federated/store.h"

#include "tests/core/federated/served.h"

using namespace lunaria;
using namespace lunaria::federated;
using namespace lunaria::federated::tested;

TEST(StoreTest, updates_come_back_in_the_order_of_clients) {
    const Folder folder;
    Store store(folder / "store");
    const int64_t job = store.job("job");
    for (const char* client : {"c", "a", "b"}) store.put_update(job, 1, {client, 3, 0, 0}, str(client, "!"));
    store.put_update(job, 2, {"d", 1, 0, 0}, "later");
    const auto rows = store.updates(job, 1);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0].client + rows[1].client + rows[2].client, "abc");
    EXPECT_EQ(store.update(job, 1, "b"), "b!");
    EXPECT_EQ(store.bytes_of_updates(job, 1), 6);
    store.forget_before(job, 2);
    EXPECT_TRUE(store.updates(job, 1).empty());
    EXPECT_EQ(store.updates(job, 2).size(), 1u);
}

TEST(StoreTest, what_is_not_committed_is_not_there) {
    const Folder folder;
    {
        Store store(folder / "store");
        const int64_t job = store.job("job");
        {
            Transaction transaction(store.database());
            store.put_model(job, 1, "lost");
        }
        Transaction transaction(store.database());
        store.put_model(job, 0, "kept");
        transaction.commit();
    }
    Store store(folder / "store");
    EXPECT_EQ(store.model(store.job("job"), 0), "kept");
    EXPECT_THROW(store.model(store.job("job"), 1), Error);
}

TEST(StoreTest, members_are_those_of_memory) {
    const Folder folder;
    Store store(folder / "store");
    const auto stored = members_in(store, store.job("job"));
    const auto other = members_in(store, store.job("other"));
    const auto memory = members_in_memory();
    for (uint64_t device = 0; device < 50; ++device) {
        Mark mark;
        mark.digest = device * 0x9e3779b97f4a7c15;
        mark.iteration = static_cast<uint32_t>(device % 7 + 1);
        mark.done = 3;
        stored->put(device_of(str(device)), mark);
        memory->put(device_of(str(device)), mark);
    }
    EXPECT_EQ(stored->all(), memory->all());
    stored->forget_before(4);
    memory->forget_before(4);
    EXPECT_EQ(stored->all(), memory->all());
    EXPECT_EQ(stored->size(), memory->size());
    EXPECT_EQ(other->size(), 0);
    EXPECT_FALSE(stored->find(1).has_value());
}

TEST(StoreTest, names_that_have_one_number_are_told_apart) {
    const Folder folder;
    Store store(folder / "store");
    const int64_t job = store.job("job");
    EXPECT_TRUE(store.put_device(job, 7, {"a", "key", 1, 0}));
    EXPECT_TRUE(store.put_device(job, 7, {"a", "new key", 2, 0}));
    EXPECT_FALSE(store.put_device(job, 7, {"b", "key", 1, 0}));
    EXPECT_EQ(store.device(job, 7)->key, "new key");
}

TEST(StoreTest, a_file_that_is_no_store_is_an_error_with_its_name) {
    const Folder folder;
    std::FILE* file = std::fopen((folder / "store").c_str(), "w");
    std::fputs("this is a text of some length, and no database at all, whatever it is called", file);
    std::fclose(file);
    try {
        Store store(folder / "store");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.where(), folder / "store");
    }
}
