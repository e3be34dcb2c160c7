//! Statistics of pings.

use element::prelude::*;

/// Times of requests and statistics of replies.
pub(super) struct PingStatistics {
    /// Time at which each sequence number was sent; negated once it was answered, zero if never sent.
    sent: Vec<Timestamp>,
    received: i64,
    duplicates: i64,
    min: u32,
    max: u32,
    sum: u64,
    squares: u64,
}

/// Number of sequence numbers.
const SEQUENCE_NUMBERS: usize = 1 << 16;

impl PingStatistics {
    pub(super) fn new() -> PingStatistics {
        PingStatistics {
            sent: vec![Timestamp::ZERO; SEQUENCE_NUMBERS],
            received: 0,
            duplicates: 0,
            min: 0,
            max: 0,
            sum: 0,
            squares: 0,
        }
    }

    /// Records a request.
    pub(super) fn sent(&mut self, sequence: u16, time: Timestamp) {
        if let Some(sent) = self.sent.get_mut(usize::from(sequence)) {
            *sent = time;
        }
    }

    /// Records a reply. Returns the round-trip time in microseconds, 0 if the arrival time is unknown, and `None` if no
    /// such request was sent.
    pub(super) fn received(&mut self, sequence: u16, time: Timestamp) -> Option<u32> {
        let sent = self.sent.get_mut(usize::from(sequence)).filter(|sent| !sent.is_zero())?;
        if *sent < Timestamp::ZERO {
            self.duplicates += 1;
            *sent = -*sent;
        }
        let mut micros = 0;
        if !time.is_zero() {
            micros = (time - *sent).micros().clamp(0, u32::MAX.into()) as u32;
            self.min = if self.received == 0 { micros } else { self.min.min(micros) };
            self.max = self.max.max(micros);
            self.sum = self.sum.wrapping_add(micros.into());
            self.squares = self.squares.wrapping_add(u64::from(micros) * u64::from(micros));
        }
        self.received += 1;
        *sent = -*sent;
        Some(micros)
    }

    /// The minimum round-trip time.
    pub(super) fn min(&self) -> String {
        microseconds(self.min.into())
    }

    /// The mean round-trip time.
    pub(super) fn mean(&self) -> String {
        microseconds(self.sum / self.received.max(1) as u64)
    }

    /// The maximum round-trip time.
    pub(super) fn max(&self) -> String {
        microseconds(self.max.into())
    }

    /// The summary that `ping` prints, after `count` requests.
    pub(super) fn summary(&self, count: i64) -> String {
        let mut text = format!("{count} packets transmitted, {} received", self.received - self.duplicates);
        if self.duplicates != 0 {
            text += &format!(", +{} duplicates", self.duplicates);
        }
        if count != 0 {
            text += &format!(", {}% packet loss\n", (count - self.received - self.duplicates) * 100 / count);
        }
        if self.received != 0 {
            let mean = self.sum / self.received as u64;
            let mean_square = self.squares / self.received as u64;
            let deviation = mean_square.saturating_sub(mean.saturating_mul(mean)).isqrt();
            let [min, mean, max, deviation] =
                [self.min.into(), mean, self.max.into(), deviation].map(milliseconds);
            text += &format!("rtt min/avg/max/mdev = {min}/{mean}/{max}/{deviation}\n");
        }
        text
    }
}

/// Formats microseconds as milliseconds with three decimals.
pub(super) fn milliseconds(micros: u64) -> String {
    format!("{}.{:03}", micros / 1_000, micros % 1_000)
}

/// Formats microseconds with their unit, or as seconds with as many decimals as needed.
fn microseconds(micros: u64) -> String {
    match micros {
        1..1_000 => format!("{micros}us"),
        _ if micros.is_multiple_of(1_000_000) => format!("{}s", micros / 1_000_000),
        _ => {
            let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
            format!("{}s", text.trim_end_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reply_is_counted_once() {
        let mut statistics = PingStatistics::new();
        let at = Timestamp::from_micros;
        assert_eq!(statistics.received(1, at(5)), None);
        statistics.sent(1, at(1_000));
        statistics.sent(2, at(2_000));
        assert_eq!(statistics.received(1, at(3_500)), Some(2_500));
        assert_eq!(statistics.received(1, at(4_000)), Some(3_000));
        assert_eq!(statistics.received(2, at(2_200)), Some(200));
        assert_eq!(
            statistics.summary(4),
            "4 packets transmitted, 2 received, +1 duplicates, 0% packet loss\nrtt min/avg/max/mdev = 0.200/1.900/3.000/1.219\n"
        );
        assert_eq!(
            (statistics.min(), statistics.mean(), statistics.max()),
            ("200us".into(), "0.0019s".into(), "0.003s".into())
        );
        assert_eq!(PingStatistics::new().summary(0), "0 packets transmitted, 0 received");
    }
}
