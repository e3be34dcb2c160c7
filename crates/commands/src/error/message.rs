//! Error messages.

use std::error::Error;

/// An error and its causes on one line, without the numbers that the standard library appends to the messages of the
/// system.
pub(crate) fn message(error: &dyn Error) -> String {
    without_numbers(&api::with_causes(error))
}

/// The text without each ` (os error N)`.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + part.split_once(')').map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FileError;
    use std::io;
    use std::path::Path;

    #[test]
    fn causes_follow_without_system_error_numbers() {
        let error = FileError::new(Path::new("a.click"), io::Error::from_raw_os_error(2));
        assert_eq!(message(&error), "a.click: No such file or directory");
        assert_eq!(without_numbers("a: b (os error 2); c (os error 13)"), "a: b; c");
    }
}
