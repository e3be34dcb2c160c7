//! Writes to handlers that changed a configuration, in tables and lists.

use api::RecordedWrite;

use super::{ago, line};

/// Characters of a value that are shown.
const MAX_SHOWN: usize = 100;

/// A write on one line: its handler, its value and its age.
pub(crate) fn drift(write: &RecordedWrite) -> String {
    let value = write.value.text();
    let mut shown: String = value.trim_end().chars().take(MAX_SHOWN).collect();
    if shown.len() < value.trim_end().len() {
        shown.push('…');
    }
    let shown = if shown.is_empty() { String::new() } else { format!(" = {shown}") };
    line(&format!("{}{shown} ({} ago)", write.path(), ago(write.time)))
}
