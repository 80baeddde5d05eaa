#include "store/location.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <optional>
#include <string>

#include "store/store.h"
#include "store/temporary_directory.h"

namespace laneshift::store {
namespace {

// Sets a variable, or removes it, and puts it back.
class Scoped {
 public:
  Scoped(const char* name, const char* value) : name_(name) {
    if (const char* before = getenv(name)) before_ = before;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~Scoped() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(UsualDirectory, IsWhatTheEnvironmentSays) {
  const Scoped home("HOME", "/h"), xdg("XDG_CACHE_HOME", "/x"), own("LANESHIFT_CACHE_DIR", "/o");
  EXPECT_EQ(UsualDirectory(), "/o");
  {
    const Scoped none("LANESHIFT_CACHE_DIR", "");
    EXPECT_EQ(UsualDirectory(), "/x/laneshift");
    const Scoped nor("XDG_CACHE_HOME", nullptr);
    EXPECT_EQ(UsualDirectory(), "/h/.cache/laneshift");
    const Scoped nothing("HOME", nullptr);
    EXPECT_EQ(UsualDirectory(), kInMemory);
  }
}

TEST(UsualDirectory, InMemoryIsNoDirectory) {
  Store store = Store::Open({.directory = std::string(kInMemory)});
  EXPECT_FALSE(store.durable());
  EXPECT_FALSE(store.warning());
  EXPECT_TRUE(store.Stat().path.empty()) << store.Stat().path;
}

}  // namespace
}  // namespace laneshift::store
