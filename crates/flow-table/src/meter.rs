//! Meters: limits of the rates of flows.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use crate::TokenBucket;
use crate::perform::MeterVerdict;
use crate::pipeline::nanoseconds;

/// Meters of a switch.
pub const MAX_METERS: usize = 1 << 16;

/// Bands of a meter.
pub const MAX_BANDS: usize = 16;

/// The burst of a band that states none, in nanoseconds at its rate: enough for connections with a round-trip time up to that, and so
/// little that a mean over some seconds shows the rate.
const DEFAULT_BURST: u64 = 250_000_000;

/// Bits of the longest frame, which such a burst lets pass at any rate.
const LONGEST_FRAME: u64 = 8 * 65_536;

/// What a band does with packets above its rate (OpenFlow 1.3.5, 5.7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BandType {
    /// Drops them.
    Drop,
    /// Raises the drop precedence of their DSCP by this number.
    DscpRemark(u8),
}

/// A band of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Band {
    /// What it does.
    pub band_type: BandType,
    /// The rate above which it does so, in kilobits or packets a second.
    pub rate: u32,
    /// The amount that may exceed the rate at once, in kilobits or packets; zero means what the rate allows in a quarter of a second,
    /// but at least one frame.
    pub burst: u32,
}

/// The definition of a meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterDefinition {
    /// The flags (`OFPMF_*`), as they were stated.
    pub flags: u16,
    /// The bands. Of those whose rate is exceeded, the one of highest rate applies.
    pub bands: Vec<Band>,
}

impl MeterDefinition {
    /// Rates are in kilobits a second (`OFPMF_KBPS`), as without a flag.
    pub const KILOBITS: u16 = 1;
    /// Rates are in packets a second (`OFPMF_PKTPS`).
    pub const PACKETS: u16 = 2;
    /// Bands state their burst (`OFPMF_BURST`).
    pub const BURST: u16 = 4;
    /// The controller asks for counters (`OFPMF_STATS`). They are always kept.
    pub const STATS: u16 = 8;

    /// Whether rates count packets.
    #[must_use]
    pub fn by_packets(&self) -> bool {
        self.flags & Self::PACKETS != 0
    }
}

/// The reason why a meter is refused (`OFPET_METER_MOD_FAILED`). Nothing is changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeterError {
    /// The meter exists (`OFPMMFC_METER_EXISTS`).
    Exists,
    /// The meter does not exist (`OFPMMFC_UNKNOWN_METER`).
    Unknown,
    /// There are already 65,536 meters (`OFPMMFC_OUT_OF_METERS`).
    TooManyMeters,
    /// More than 16 bands (`OFPMMFC_OUT_OF_BANDS`).
    TooManyBands,
    /// A rate of zero (`OFPMMFC_BAD_RATE`).
    BadRate,
    /// A precedence level of zero or above 2 (`OFPMMFC_BAD_BAND_VALUE`).
    BadLevel,
}

impl fmt::Display for MeterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists => formatter.write_str("the meter exists"),
            Self::Unknown => formatter.write_str("there is no such meter"),
            Self::TooManyMeters => write!(formatter, "there are already {MAX_METERS} meters, the limit"),
            Self::TooManyBands => write!(formatter, "more than {MAX_BANDS} bands"),
            Self::BadRate => formatter.write_str("a band has a rate of zero"),
            Self::BadLevel => formatter.write_str("a precedence level is neither 1 nor 2"),
        }
    }
}

impl std::error::Error for MeterError {}

/// Packets and bytes of a meter or band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MeterCounters {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl AddAssign for MeterCounters {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl MeterCounters {
    fn count(&mut self, length: u32) {
        self.packets += 1;
        self.bytes += u64::from(length);
    }
}

/// A meter with its counters.
#[derive(Debug)]
pub struct Meter {
    /// Its definition.
    pub definition: MeterDefinition,
    /// Packets that entries sent to it.
    pub counters: MeterCounters,
    /// Packets to which each band applied.
    pub bands: Vec<MeterCounters>,
    /// The bucket of each band, whose tokens are packets or bits.
    buckets: Vec<TokenBucket>,
    /// When it was defined.
    pub created: Duration,
}

impl Meter {
    fn new(definition: MeterDefinition, now: Duration) -> Self {
        let (unit, frame) = if definition.by_packets() { (1, 1) } else { (1_000, LONGEST_FRAME) };
        let bucket = |band: &Band| {
            let rate = u64::from(band.rate) * unit;
            match band.burst {
                0 => TokenBucket::new(rate, DEFAULT_BURST, frame),
                burst => TokenBucket::new(rate, 0, u64::from(burst) * unit),
            }
        };
        Self {
            buckets: definition.bands.iter().map(bucket).collect(),
            bands: vec![MeterCounters::default(); definition.bands.len()],
            definition,
            counters: MeterCounters::default(),
            created: now,
        }
    }

    /// The same meter for another thread: both together let pass what one would. It has counters of its own.
    fn shared(&self) -> Self {
        Self {
            definition: self.definition.clone(),
            counters: MeterCounters::default(),
            bands: vec![MeterCounters::default(); self.bands.len()],
            buckets: self.buckets.clone(),
            created: self.created,
        }
    }

    fn meter(&mut self, length: u32, now: Duration) -> MeterVerdict {
        self.counters.count(length);
        let now = nanoseconds(now);
        let cost = if self.definition.by_packets() { 1 } else { u64::from(length) * 8 };
        let mut applied: Option<usize> = None;
        for (at, (bucket, band)) in self.buckets.iter_mut().zip(&self.definition.bands).enumerate() {
            if !bucket.take_if(cost, now)
                && applied.is_none_or(|other| self.definition.bands[other].rate < band.rate)
            {
                applied = Some(at);
            }
        }
        let Some(at) = applied else { return MeterVerdict::Pass };
        if let Some(counters) = self.bands.get_mut(at) {
            counters.count(length);
        }
        match self.definition.bands[at].band_type {
            BandType::Drop => MeterVerdict::Drop,
            BandType::DscpRemark(levels) => MeterVerdict::Remark(levels),
        }
    }
}

/// The meters of a switch (OpenFlow 1.3.5, 5.7).
#[derive(Debug, Default)]
pub struct Meters {
    meters: BTreeMap<u32, Meter>,
}

impl Meters {
    /// Adds a meter.
    ///
    /// # Errors
    /// See [`MeterError`].
    pub fn add(&mut self, number: u32, definition: MeterDefinition, now: Duration) -> Result<(), MeterError> {
        if self.meters.contains_key(&number) {
            return Err(MeterError::Exists);
        }
        if self.meters.len() >= MAX_METERS {
            return Err(MeterError::TooManyMeters);
        }
        check(&definition)?;
        self.meters.insert(number, Meter::new(definition, now));
        Ok(())
    }

    /// Replaces the definition of a meter. Its counters start again.
    ///
    /// # Errors
    /// See [`MeterError`].
    pub fn modify(
        &mut self,
        number: u32,
        definition: MeterDefinition,
        now: Duration,
    ) -> Result<(), MeterError> {
        let Some(meter) = self.meters.get_mut(&number) else { return Err(MeterError::Unknown) };
        check(&definition)?;
        *meter = Meter::new(definition, now);
        Ok(())
    }

    /// Takes over a meter of another thread of the switch, in place of the one before: both together let pass what one would.
    pub fn share(&mut self, number: u32, other: &Self) {
        if let Some(meter) = other.meters.get(&number) {
            self.meters.insert(number, meter.shared());
        }
    }

    /// Removes a meter; removing one that does not exist is no error (6.5).
    pub fn remove(&mut self, number: u32) -> Option<Meter> {
        self.meters.remove(&number)
    }

    /// A meter.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Meter> {
        self.meters.get(&number)
    }

    /// All meters, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Meter)> {
        self.meters.iter().map(|(number, meter)| (*number, meter))
    }

    /// Counts a packet in a meter, and decides about it. A meter that does not exist passes all packets.
    pub fn meter(&mut self, number: u32, length: u32, now: Duration) -> MeterVerdict {
        self.meters.get_mut(&number).map_or(MeterVerdict::Pass, |meter| meter.meter(length, now))
    }
}

fn check(definition: &MeterDefinition) -> Result<(), MeterError> {
    if definition.bands.len() > MAX_BANDS {
        return Err(MeterError::TooManyBands);
    }
    for band in &definition.bands {
        if band.rate == 0 {
            return Err(MeterError::BadRate);
        }
        if matches!(band.band_type, BandType::DscpRemark(level) if !(1..=2).contains(&level)) {
            return Err(MeterError::BadLevel);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(by_packets: bool, bands: &[(BandType, u32, u32)]) -> MeterDefinition {
        let bands = bands.iter().map(|(band_type, rate, burst)| Band {
            band_type: *band_type,
            rate: *rate,
            burst: *burst,
        });
        let flags = if by_packets { MeterDefinition::PACKETS } else { MeterDefinition::KILOBITS };
        MeterDefinition { flags, bands: bands.collect() }
    }

    /// How many of the packets that arrive evenly for ten seconds get each verdict: the same in one thread and divided among three.
    fn verdicts(definition: MeterDefinition, length: u32, per_second: u64) -> [u64; 3] {
        let counts = [1, 3].map(|threads| verdicts_in(threads, definition.clone(), length, per_second));
        assert_eq!(counts[0], counts[1]);
        counts[0]
    }

    fn verdicts_in(threads: usize, definition: MeterDefinition, length: u32, per_second: u64) -> [u64; 3] {
        let mut first = Meters::default();
        first.add(1, definition, Duration::ZERO).unwrap();
        let mut all: Vec<Meters> = (0..threads).map(|_| Meters::default()).collect();
        all.iter_mut().for_each(|meters| meters.share(1, &first));
        let mut counts = [0; 3];
        for packet in 0..10 * per_second {
            let now = Duration::from_nanos(packet * 1_000_000_000 / per_second);
            let meters = &mut all[packet as usize % threads];
            counts[match meters.meter(1, length, now) {
                MeterVerdict::Pass => 0,
                MeterVerdict::Remark(_) => 1,
                MeterVerdict::Drop => 2,
            }] += 1;
        }
        let counted = all.iter().map(|meters| meters.get(1).unwrap());
        let sums = counted.fold([0, 0], |[packets, bands], meter| {
            let of_bands: u64 = meter.bands.iter().map(|band| band.packets).sum();
            [packets + meter.counters.packets, bands + of_bands]
        });
        assert_eq!(sums, [10 * per_second, counts[1] + counts[2]]);
        counts
    }

    #[test]
    fn rates_are_kept_to_the_packet() {
        let by_packets = definition(true, &[(BandType::Drop, 1_000, 50)]);
        assert_eq!(verdicts(by_packets.clone(), 60, 1_000), [10_000, 0, 0]);
        // The burst, and what the rate gives until the last packet.
        assert_eq!(verdicts(by_packets, 60, 5_000), [50 + 9_999, 0, 50_000 - 50 - 9_999]);
        // Without a burst, it is what the rate gives in a quarter of a second, or the longest frame.
        let by_rate = definition(true, &[(BandType::Drop, 1_000, 0)]);
        assert_eq!(verdicts(by_rate, 60, 5_000), [250 + 9_999, 0, 50_000 - 250 - 9_999]);
        let by_rate = definition(false, &[(BandType::Drop, 8_000, 0)]);
        assert_eq!(verdicts(by_rate, 1_000, 2_000), [250 + 9_999, 0, 20_000 - 250 - 9_999]);
        let by_rate = definition(false, &[(BandType::Drop, 8, 0)]);
        assert_eq!(verdicts(by_rate, 65_536, 1), [1, 0, 9]);
        // 800 kb/s are 1,000 packets of 100 bytes a second; the burst of 8 kb is 10 packets.
        let by_bits = definition(false, &[(BandType::Drop, 800, 8)]);
        assert_eq!(verdicts(by_bits, 100, 2_000), [10 + 9_999, 0, 20_000 - 10 - 9_999]);
    }

    #[test]
    fn the_exceeded_band_of_highest_rate_applies() {
        let bands = [(BandType::DscpRemark(1), 1_000, 1), (BandType::Drop, 2_000, 1)];
        let [pass, remark, drop] = verdicts(definition(true, &bands), 60, 4_000);
        assert!((9_990..10_010).contains(&pass), "{pass}");
        assert!((9_990..10_010).contains(&remark), "{remark}");
        assert!((19_990..20_010).contains(&drop), "{drop}");
    }

    #[test]
    fn wrong_meters_are_refused() {
        let mut meters = Meters::default();
        let mut add = |bands: &[(BandType, u32, u32)]| meters.add(1, definition(true, bands), Duration::ZERO);
        assert_eq!(add(&[(BandType::Drop, 0, 0)]), Err(MeterError::BadRate));
        assert_eq!(add(&[(BandType::DscpRemark(3), 1, 0)]), Err(MeterError::BadLevel));
        assert_eq!(add(&[(BandType::Drop, 1, 0); 17]), Err(MeterError::TooManyBands));
        add(&[]).unwrap();
        assert_eq!(add(&[]), Err(MeterError::Exists));
        assert_eq!(meters.modify(2, definition(true, &[]), Duration::ZERO), Err(MeterError::Unknown));
        assert_eq!(meters.meter(1, 60, Duration::ZERO), MeterVerdict::Pass);
        assert_eq!(meters.meter(2, 60, Duration::ZERO), MeterVerdict::Pass, "no such meter");
        assert!(meters.remove(1).is_some() && meters.remove(1).is_none());
    }
}
