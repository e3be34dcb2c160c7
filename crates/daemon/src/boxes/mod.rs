//! A box: its creation, its state, requests to it, and its end.

mod calls;
mod forge;
mod instance;
mod member;
mod outputs;
mod pools;
mod report;
mod templates;

pub(crate) use calls::{diagnostics, in_box, refusal, remarks};
pub(crate) use forge::{Forge, Share};
pub(crate) use instance::{Instance, Settled};
pub(crate) use member::{Installed, Member, Phase};
pub(crate) use outputs::{Contents, Kept, Shelf, Written, folder as output_folder};
pub(crate) use pools::shares_packets;
pub(crate) use report::{ExitStatus, report};
pub(crate) use templates::{Beginning, Recipe, Template, Templates};
