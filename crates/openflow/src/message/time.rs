//! Times in messages.

use std::time::Duration;

use crate::ErrorCode;
use crate::wire::{Reader, Writer};

/// Reads seconds and nanoseconds.
pub(crate) fn read_duration(reader: &mut Reader<'_>) -> Result<Duration, ErrorCode> {
    let (seconds, nanoseconds) = (reader.u32()?, reader.u32()?);
    Ok(Duration::new(seconds.into(), nanoseconds.min(999_999_999)))
}

/// Writes seconds and nanoseconds. Times beyond 136 years count as that.
pub(crate) fn write_duration(writer: &mut Writer, duration: Duration) {
    writer.u32(u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)).u32(duration.subsec_nanos());
}

/// Reads a timeout in seconds. Zero means none.
pub(crate) fn read_timeout(reader: &mut Reader<'_>) -> Result<Option<Duration>, ErrorCode> {
    let seconds = reader.u16()?;
    Ok((seconds != 0).then(|| Duration::from_secs(seconds.into())))
}

/// Writes a timeout in seconds, rounded up.
pub(crate) fn write_timeout(writer: &mut Writer, timeout: Option<Duration>) {
    let seconds = timeout.map_or(0, |timeout| {
        let whole = timeout.as_secs() + u64::from(timeout.subsec_nanos() != 0);
        u16::try_from(whole.max(1)).unwrap_or(u16::MAX)
    });
    writer.u16(seconds);
}
