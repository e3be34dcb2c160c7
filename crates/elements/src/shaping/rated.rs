//! What the elements that pull or split at a rate share.

use element::arguments::{Bandwidth, FromArgument};
use element::number_format;
use element::prelude::*;

use super::tokenbucket::TokenBucket;

/// Tokens that a bucket of bytes holds beyond its burst, and that must be there for a packet to go: then the bucket
/// pays for any packet without falling below zero.
const THRESHOLD: u32 = 131_072;
/// How long a bucket fills if nobody says.
const DURATION: Timestamp = Timestamp::from_millis(20);

/// Whether packets or bytes count.
pub trait Measure: 'static {
    /// What the rate is written as.
    type Rate: FromArgument;
    /// Tokens that must be there for a packet to go.
    const THRESHOLD: u32;
    /// Tokens that a bucket holds beyond its burst.
    const RESERVE: u32;

    /// The number of a rate.
    fn number(rate: Self::Rate) -> u32;

    /// Tokens that a packet costs.
    fn cost(packet: &Packet) -> u32;

    /// A rate as handlers write it.
    fn text(rate: u32) -> String;
}

/// Packets count.
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

/// Bytes count.
pub struct Octets;

impl Measure for Octets {
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

/// What a rate of packets is given as.
#[derive(ArgumentGroup)]
pub struct PacketRate {
    /// Packets a second.
    #[arg(position)]
    rate: u32,
    /// How long the token bucket takes to fill.
    burst_duration: Option<Timestamp>,
    /// Packets that may follow each other at once.
    burst_size: Option<u32>,
}

impl PacketRate {
    pub(crate) fn allowance(self) -> Result<Allowance<Packets>, SetupError> {
        Allowance::new(self.rate, self.burst_duration, self.burst_size)
    }
}

/// What a rate of bytes is given as.
#[derive(ArgumentGroup)]
pub struct ByteRate {
    /// Bandwidth of the packets.
    #[arg(position)]
    rate: Bandwidth,
    /// How long the token bucket takes to fill.
    burst_duration: Option<Timestamp>,
    /// Bytes that may follow each other at once.
    burst_bytes: Option<u32>,
}

impl ByteRate {
    pub(crate) fn allowance(self) -> Result<Allowance<Octets>, SetupError> {
        Allowance::new(self.rate, self.burst_duration, self.burst_bytes)
    }
}

/// The arguments of an element that keeps to a rate.
pub trait Rated: Args + 'static {
    /// What counts.
    type Measure: Measure;

    /// The token bucket that they describe.
    fn allowance(self) -> Result<Allowance<Self::Measure>, SetupError>;
}

/// A token bucket as the arguments of an element describe it.
pub struct Allowance<M: Measure> {
    bucket: TokenBucket,
    duration: Option<Timestamp>,
    size: Option<u32>,
    measure: core::marker::PhantomData<M>,
}

impl<M: Measure> Allowance<M> {
    /// For a rate, and either how long the bucket takes to fill or how large it is.
    fn new(
        rate: M::Rate,
        duration: Option<Timestamp>,
        size: Option<u32>,
    ) -> Result<Allowance<M>, SetupError> {
        if duration.is_some() && size.is_some() {
            return Err(SetupError::new("cannot specify both BURST_DURATION and BURST_SIZE"));
        }
        let bucket = TokenBucket::new(0, 1);
        let mut allowance = Allowance { bucket, duration, size, measure: core::marker::PhantomData };
        allowance.set_rate(M::number(rate));
        Ok(allowance)
    }

    fn set_rate(&mut self, rate: u32) {
        let size = self.size.unwrap_or_else(|| {
            let millis = u64::try_from(self.duration.unwrap_or(DURATION).millis()).unwrap_or(0);
            u32::try_from(u64::from(rate).saturating_mul(millis) / 1_000).unwrap_or(u32::MAX)
        });
        self.bucket.assign(rate, size.saturating_add(M::RESERVE).max(1));
    }

    /// Takes the description of another, but keeps what is in the bucket.
    pub fn adopt(&mut self, other: Allowance<M>) {
        let old = core::mem::replace(self, other);
        self.bucket.take_level(&old.bucket);
    }

    /// Sets the rate from a handler's value.
    pub fn write(&mut self, cx: &Context, value: &str) -> Result<(), HandlerError> {
        let rate = cx.keyword("RATE", value)?;
        self.set_rate(M::number(rate));
        Ok(())
    }

    /// The rate, as handlers write it.
    pub fn text(&self) -> String {
        M::text(self.bucket.rate())
    }

    /// Lets tokens come until steady time `now`; whether a packet may go then.
    #[inline]
    pub fn allows(&mut self, now: Timestamp) -> bool {
        self.bucket.refill(now);
        self.bucket.contains(M::THRESHOLD)
    }

    /// Pays for a packet.
    #[inline]
    pub fn pay(&mut self, packet: &Packet) {
        self.bucket.remove(M::cost(packet));
    }

    /// Time until a packet may go.
    pub fn wait(&self) -> Timestamp {
        self.bucket.time_until(M::THRESHOLD)
    }
}
