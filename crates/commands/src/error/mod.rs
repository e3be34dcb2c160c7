//! The errors of commands, and how they are printed.

mod choice_error;
mod command_error;
mod file_error;
mod hint;
mod message;

pub(crate) use choice_error::ChoiceError;
pub(crate) use command_error::{CommandError, EXIT_CODES, FolderPurpose};
pub(crate) use file_error::FileError;
pub(crate) use message::message;
