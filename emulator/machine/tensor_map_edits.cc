#include "emulator/machine/tensor_map_edits.h"

namespace laneshift::emulator {

void TensorMapEdits::NoteEdit(uint64_t address, uint64_t editor, bool released) {
  const std::lock_guard lock(mutex_);
  Edit& edit = edits_[address];
  ++edit.version;
  edit.editor = editor;
  edit.released = released;
  any_ = true;
}

void TensorMapEdits::Release(uint64_t editor) {
  if (!any_) return;
  const std::lock_guard lock(mutex_);
  for (auto& [address, edit] : edits_) {
    if (edit.editor == editor) edit.released = true;
  }
}

void TensorMapEdits::Acquire(uint64_t address, uint64_t user) {
  if (!any_) return;
  const std::lock_guard lock(mutex_);
  if (const auto edit = edits_.find(address); edit != edits_.end()) edit->second.acquired[user] = edit->second.version;
}

TensorMapEdits::State TensorMapEdits::StateOf(uint64_t address, uint64_t user) {
  if (!any_) return State::kVisible;
  const std::lock_guard lock(mutex_);
  const auto edit = edits_.find(address);
  if (edit == edits_.end()) return State::kVisible;
  if (!edit->second.released) return State::kNotReleased;
  const auto acquired = edit->second.acquired.find(user);
  const bool current = acquired != edit->second.acquired.end() && acquired->second == edit->second.version;
  return current ? State::kVisible : State::kNotAcquired;
}

}  // namespace laneshift::emulator
