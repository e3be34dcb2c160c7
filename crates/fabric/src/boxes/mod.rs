//! A box: its creation, its state, requests to it, and its end.

mod account;
mod calls;
mod cores;
mod cpu_budget;
mod factory;
mod images;
mod instance;
mod managed_box;
mod output_store;
mod pools;
mod report;
mod resources;
mod sandbox_kind;
mod share;
mod silence;
mod spares;
mod templates;
mod write_record;

pub(crate) use calls::in_box;
pub(crate) use cpu_budget::{CpuBudget, ThrottleAction};
pub(crate) use factory::{CreatedBox, SandboxFactory};
pub(crate) use instance::{FinalStatus, Instance, Remains};
pub(crate) use managed_box::{ManagedBox, PastAccount, Phase};
pub(crate) use output_store::{OutputStore, StoreResult};
pub(crate) use report::{ExitStatus, report, summary};
pub(crate) use sandbox_kind::reported_sandbox;
pub(crate) use share::Share;
pub(crate) use spares::{SpareShape, is_memory_short};
pub(crate) use templates::{StartMode, Template, TemplateKey, Templates};
pub(crate) use write_record::{NewWrite, OwnWrite, WriteRecord};
