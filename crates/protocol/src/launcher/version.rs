//! The version of the conversation between daemon and launcher.

/// The version of this conversation. A change that the previous version does not understand raises it by one.
pub const VERSION: u16 = 1;
