//! The conversation between daemon and launcher.

mod version;

pub use version::VERSION;
