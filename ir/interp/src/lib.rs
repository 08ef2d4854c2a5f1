//! The oracle: every instruction meaning, no attention to speed.
