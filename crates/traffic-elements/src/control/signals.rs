//! Signal names of POSIX and Linux.

use element::{Setup, arguments::FromArgument};

/// The number of a signal, by name or number.
pub(super) fn number(name: &str, setup: &Setup) -> Option<i32> {
    const SIGNALS: &[(&str, i32)] = &[
        ("ABRT", 6),
        ("ALRM", 14),
        ("HUP", 1),
        ("INT", 2),
        ("IO", 29),
        ("PIPE", 13),
        ("QUIT", 3),
        ("TERM", 15),
        ("TSTP", 20),
        ("USR1", 10),
        ("USR2", 12),
    ];
    let known = SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    known.or_else(|| i32::from_argument(name, setup).ok().filter(|number| (0..32).contains(number)))
}
