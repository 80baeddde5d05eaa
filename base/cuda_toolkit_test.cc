#include "base/cuda_toolkit.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace laneshift::base {
namespace {

namespace fs = std::filesystem;

class CudaToolkit : public testing::Test {
 protected:
  CudaToolkit() {
    std::string pattern = (fs::temp_directory_path() / "laneshift-toolkit-XXXXXX").string();
    home_ = mkdtemp(pattern.data());
    fs::create_directories(home_ + "/bin");
  }
  ~CudaToolkit() override { fs::remove_all(home_); }

  // A variable of this process, put back when the test ends: a machine may have set either.
  class Variable {
   public:
    explicit Variable(const char* name) : name_(name) {
      if (const char* value = std::getenv(name)) own_ = value;
      unsetenv(name);
    }
    ~Variable() { own_ ? setenv(name_, own_->c_str(), 1) : unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

   private:
    const char* name_;
    std::optional<std::string> own_;
  };

  const Variable cuda_home_{"CUDA_HOME"};
  const Variable cudnn_home_{"CUDNN_HOME"};
  std::string home_;
};

TEST_F(CudaToolkit, ItsVariablesComeFirst) {
  setenv("CUDA_HOME", home_.c_str(), 1);
  setenv("CUDNN_HOME", "/opt/cudnn", 1);
  const std::vector<std::string> directories = CudaLibraryDirectories();
  ASSERT_GE(directories.size(), 5u);
  EXPECT_EQ(directories[0], home_ + "/lib64");
  EXPECT_EQ(directories[1], home_ + "/lib");
  EXPECT_EQ(directories[2], "/opt/cudnn/lib64");
  EXPECT_NE(std::find(directories.begin(), directories.end(), "/usr/local/cuda/lib64"), directories.end());
}

TEST_F(CudaToolkit, PtxasOfCudaHomeIsTaken) {
  setenv("CUDA_HOME", home_.c_str(), 1);
  const std::string own = home_ + "/bin/ptxas";
  EXPECT_NE(FindPtxas(), own) << "there is none";
  std::ofstream(own) << "#!/bin/sh\n";
  EXPECT_NE(FindPtxas(), own) << "it is no program";
  chmod(own.c_str(), 0755);
  EXPECT_EQ(FindPtxas(), own);
}

TEST_F(CudaToolkit, AnEmptyVariableIsNone) {
  setenv("CUDA_HOME", "", 1);
  EXPECT_EQ(CudaLibraryDirectories().front(), "/usr/local/cuda/lib64");
}

}  // namespace
}  // namespace laneshift::base
