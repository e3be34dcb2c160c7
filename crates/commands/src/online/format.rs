//! Short text forms of a box's figures and states, for tables of 80 columns.

use std::time::{Duration, SystemTime};

use api::{BoxState, BoxStatus, Sandbox, Time};

/// A time span in its two largest units.
pub(crate) fn uptime(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// The time since a point in time.
pub(crate) fn ago(time: Time) -> String {
    let passed = SystemTime::now().duration_since(time.system()).unwrap_or(Duration::ZERO);
    uptime(passed.as_millis().min(u64::MAX.into()) as u64)
}

/// A rate per second in at most five characters.
pub(crate) fn rate(number: f64) -> String {
    let scaled = |number: f64, unit: &str| match number {
        number if number < 9.995 => format!("{number:.2}{unit}"),
        number if number < 99.95 => format!("{number:.1}{unit}"),
        number => format!("{number:.0}{unit}"),
    };
    match number {
        number if number.is_nan() || number < 0.05 => "0".into(),
        number if number < 999.5 => format!("{number:.0}"),
        number if number < 999_500.0 => scaled(number / 1e3, "k"),
        number if number < 999.5e6 => scaled(number / 1e6, "M"),
        number if number < 999.5e9 => scaled(number / 1e9, "G"),
        number => scaled((number / 1e12).min(999.0), "T"),
    }
}

/// A share of a CPU as a percentage.
pub(crate) fn share(cores: f64) -> String {
    match 100.0 * cores {
        percent if percent.is_nan() || percent < 0.05 => "0%".into(),
        percent if percent < 9.95 => format!("{percent:.1}%"),
        percent => format!("{percent:.0}%"),
    }
}

/// The state of a box in a word.
pub(crate) fn state(state: BoxState) -> &'static str {
    match state {
        BoxState::Created => "created",
        BoxState::Running => "running",
        BoxState::Suspended => "suspended",
        BoxState::Stopped => "stopped",
        BoxState::Crashed => "crashed",
        BoxState::Waiting => "waiting",
        BoxState::Unknown => "unknown",
    }
}

/// The sandbox of a box in a word.
pub(crate) fn sandbox(sandbox: Sandbox) -> &'static str {
    match sandbox {
        Sandbox::Auto => "auto",
        Sandbox::Vm => "vm",
        Sandbox::Process => "process",
    }
}

/// The sandbox of a box, and the number of its cores if there are several.
pub(crate) fn cores_of(status: &BoxStatus) -> String {
    let sandbox = sandbox(status.sandbox);
    if status.cores.is_one() { sandbox.into() } else { format!("{sandbox} x{}", status.cores) }
}

/// The sandbox of a box, in words that continue a sentence after "runs".
pub(crate) fn runs_in(sandbox: Sandbox) -> &'static str {
    match sandbox {
        Sandbox::Auto => "in a virtual machine or a process",
        Sandbox::Vm => "in a virtual machine",
        Sandbox::Process => "in a process",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_times_are_short() {
        for (number, expected) in [
            (0.0, "0"),
            (f64::NAN, "0"),
            (0.4, "0"),
            (7.0, "7"),
            (999.4, "999"),
            (1_000.0, "1.00k"),
            (9_999.0, "10.0k"),
            (999_400.0, "999k"),
            (14_880_000.0, "14.9M"),
            (4.5e9, "4.50G"),
            (1e30, "999T"),
        ] {
            assert_eq!(rate(number), expected, "{number}");
            assert!(rate(number).len() <= 5);
        }
        for (time, expected) in
            [(0, "0s"), (59_999, "59s"), (61_000, "1m01s"), (3_600_000, "1h00m"), (90_000_000, "1d01h")]
        {
            assert_eq!(uptime(time), expected);
        }
        assert_eq!([share(0.0), share(0.0123), share(0.5), share(2.0)], ["0%", "1.2%", "50%", "200%"]);
    }
}
