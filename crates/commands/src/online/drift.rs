//! Writes to handlers that changed a configuration, in tables and lists.

use api::RecordedWrite;

use super::{ago, line};

/// Characters of a value that are shown.
const MAX_SHOWN: usize = 100;

/// A write on one line: its handler, its value, who wrote it if that was the box itself, and its age.
pub(crate) fn drift(write: &RecordedWrite) -> String {
    let value = write.value.text();
    let mut shown: String = value.trim_end().chars().take(MAX_SHOWN).collect();
    if shown.len() < value.trim_end().len() {
        shown.push('…');
    }
    let shown = if shown.is_empty() { String::new() } else { format!(" = {shown}") };
    let author = match write.times {
        _ if !write.is_own() => String::new(),
        None | Some(0 | 1) => "by the box itself, ".into(),
        Some(times) => format!("{times} times by the box itself, "),
    };
    line(&format!("{}{shown} ({author}{} ago)", write.path(), ago(write.time)))
}
