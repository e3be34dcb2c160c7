//! Lists within one argument.

use alloc::vec::Vec;

use crate::error::ArgumentError;
use crate::text;

use super::parser::FromArgument;
use super::setup::Setup;

/// Zero or more values separated by spaces: `BADSRC 10.0.0.255 10.0.1.255`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceSeparated<T>(pub Vec<T>);

impl<T: FromArgument> FromArgument for SpaceSeparated<T> {
    const KIND: &'static str = "list separated by spaces";

    fn from_argument(text: &str, setup: &Setup) -> Result<SpaceSeparated<T>, ArgumentError> {
        text::words(text)
            .iter()
            .map(|word| T::from_argument(word, setup))
            .collect::<Result<_, _>>()
            .map(SpaceSeparated)
    }
}
