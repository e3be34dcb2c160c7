//! Rate limits of the elements that pull or split at a rate.

use element::Shard;
use element::arguments::{Bandwidth, FromArgument};
use element::number_format;
use element::prelude::*;

use super::tokenbucket::TokenBucket;

/// Tokens that a bucket of bytes holds beyond its burst, and that must be present before a packet may go. The bucket
/// can then pay for any packet without falling below zero.
const THRESHOLD: u32 = 131_072;
/// Default time in which a bucket fills.
const DURATION: Timestamp = Timestamp::from_millis(20);

/// Selects whether the bucket counts packets or bytes.
pub trait Measure: 'static {
    /// How the rate is written.
    type Rate: FromArgument;
    /// Tokens that must be present before a packet may go.
    const THRESHOLD: u32;
    /// Tokens that a bucket holds beyond its burst.
    const RESERVE: u32;

    /// The rate as a number.
    fn number(rate: Self::Rate) -> u32;

    /// Tokens that a packet costs.
    fn cost(packet: &Packet) -> u32;

    /// A rate as handlers print it.
    fn text(rate: u32) -> String;
}

/// Counts packets.
pub struct Packets;

impl Measure for Packets {
    type Rate = u32;
    const THRESHOLD: u32 = 1;
    const RESERVE: u32 = 0;

    fn number(rate: u32) -> u32 {
        rate
    }

    #[inline]
    fn cost(_: &Packet) -> u32 {
        1
    }

    fn text(rate: u32) -> String {
        rate.to_string()
    }
}

/// Counts bytes.
pub struct Bytes;

impl Measure for Bytes {
    type Rate = Bandwidth;
    const THRESHOLD: u32 = THRESHOLD;
    const RESERVE: u32 = THRESHOLD;

    fn number(rate: Bandwidth) -> u32 {
        rate.0 as u32
    }

    #[inline]
    fn cost(packet: &Packet) -> u32 {
        packet.len() as u32
    }

    fn text(rate: u32) -> String {
        number_format::bandwidth(rate)
    }
}

/// Arguments for a packet rate.
#[derive(ArgumentGroup)]
pub struct PacketRate {
    /// Packets per second.
    #[arg(position)]
    rate: u32,
    /// Time in which the token bucket fills.
    burst_duration: Option<Timestamp>,
    /// Burst size in packets.
    burst_size: Option<u32>,
}

impl PacketRate {
    pub(crate) fn rate_limit(self) -> Result<RateLimit<Packets>, SetupError> {
        RateLimit::new(self.rate, self.burst_duration, self.burst_size)
    }
}

/// Arguments for a bandwidth.
#[derive(ArgumentGroup)]
pub struct ByteRate {
    /// Maximum bandwidth.
    #[arg(position)]
    rate: Bandwidth,
    /// Time in which the token bucket fills.
    burst_duration: Option<Timestamp>,
    /// Burst size in bytes.
    burst_bytes: Option<u32>,
}

impl ByteRate {
    pub(crate) fn rate_limit(self) -> Result<RateLimit<Bytes>, SetupError> {
        RateLimit::new(self.rate, self.burst_duration, self.burst_bytes)
    }
}

/// Arguments of an element that enforces a rate.
pub trait RateArguments: Args + 'static {
    /// What the rate counts.
    type Measure: Measure;

    /// The token bucket that the arguments describe.
    fn rate_limit(self) -> Result<RateLimit<Self::Measure>, SetupError>;
}

/// A token bucket with the rate and burst from an element's arguments.
pub struct RateLimit<M: Measure> {
    bucket: TokenBucket,
    /// The rate of all shards together.
    rate: u32,
    duration: Option<Timestamp>,
    size: Option<u32>,
    measure: core::marker::PhantomData<M>,
}

impl<M: Measure> RateLimit<M> {
    /// For a rate, with the burst given as a time or as a size.
    fn new(
        rate: M::Rate,
        duration: Option<Timestamp>,
        size: Option<u32>,
    ) -> Result<RateLimit<M>, SetupError> {
        if duration.is_some() && size.is_some() {
            return Err(SetupError::new("cannot specify both BURST_DURATION and BURST_SIZE"));
        }
        let bucket = TokenBucket::new(0, 1);
        let rate = M::number(rate);
        let mut rate_limit = RateLimit { bucket, rate, duration, size, measure: core::marker::PhantomData };
        rate_limit.set_rate(rate);
        Ok(rate_limit)
    }

    /// The part of a shard.
    pub fn divided(mut self, shard: Shard) -> Result<RateLimit<M>, SetupError> {
        if let Some(size) = &mut self.size {
            *size = shard.divide("BURST_SIZE", *size)?;
        }
        self.set_rate(shard.divide("RATE", self.rate)?);
        Ok(self)
    }

    fn set_rate(&mut self, rate: u32) {
        let size = self.size.unwrap_or_else(|| {
            let millis = u64::try_from(self.duration.unwrap_or(DURATION).millis()).unwrap_or(0);
            u32::try_from(u64::from(rate).saturating_mul(millis) / 1_000).unwrap_or(u32::MAX)
        });
        self.bucket.assign(rate, size.saturating_add(M::RESERVE).max(1));
    }

    /// Takes over rate and burst of `other`, and keeps the tokens.
    pub fn adopt(&mut self, other: RateLimit<M>) {
        let old = core::mem::replace(self, other);
        self.bucket.take_level(&old.bucket);
    }

    /// Sets the rate from a handler's value.
    pub fn write(&mut self, cx: &Context, value: &str) -> Result<(), HandlerError> {
        let rate = M::number(cx.keyword("RATE", value)?);
        self.set_rate(cx.shard().divide("RATE", rate)?);
        self.rate = rate;
        Ok(())
    }

    /// The rate as handlers print it.
    pub fn text(&self) -> String {
        M::text(self.rate)
    }

    /// Refills the bucket up to steady time `now` and returns whether a packet may go.
    #[inline]
    pub fn allows(&mut self, now: Timestamp) -> bool {
        self.bucket.refill(now);
        self.bucket.contains(M::THRESHOLD)
    }

    /// Pays for a packet.
    #[inline]
    pub fn consume(&mut self, packet: &Packet) {
        self.bucket.remove(M::cost(packet));
    }

    /// Time until a packet may go.
    pub fn wait(&self) -> Timestamp {
        self.bucket.time_until(M::THRESHOLD)
    }
}
