//! Probabilities in fixed point.

use super::{FromArgument, Real, Setup};
use crate::error::ArgumentError;
use crate::number_format;
use alloc::string::String;

/// Probability between 0 and 1 in fixed point with `BITS` fractional bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probability<const BITS: u32>(pub u32);

impl<const BITS: u32> Probability<BITS> {
    /// Probability one.
    pub const ONE: Probability<BITS> = Probability(1 << BITS);

    /// The probability as handlers print it.
    pub fn text(self) -> String {
        number_format::fixed(self.0.into(), BITS)
    }

    /// The probability of the opposite event.
    pub fn complement(self) -> Probability<BITS> {
        Probability((1 << BITS) - self.0.min(1 << BITS))
    }
}

impl<const BITS: u32> FromArgument for Probability<BITS> {
    const KIND: &'static str = "number between 0 and 1";

    fn from_argument(text: &str, setup: &Setup) -> Result<Probability<BITS>, ArgumentError> {
        let Real(value) = Real::from_argument(text, setup)?;
        let value_of_all = f64::from(u32::MAX) / f64::from(1u32 << BITS);
        if value >= value_of_all {
            return Err(ArgumentError::OutOfRange(number_format::fixed(u32::MAX.into(), BITS)));
        }
        if value > 1.0 {
            return Err(ArgumentError::SemanticWithKeyword("must be between 0 and 1".into()));
        }
        Ok(Probability((value * f64::from(1u32 << BITS) + 0.5) as u32))
    }
}
