//! Draws configurations.

mod dot;
mod layers;
mod listing;
mod model;
mod picture;
mod ports;
mod svg;

pub(crate) use dot::dot;
pub(crate) use listing::Listing;
pub(crate) use model::Model;
pub(crate) use svg::svg;
