//! `Message`: prints a message when a configuration is loaded.

use element::arguments::Word;
use element::prelude::*;

/// Prints MESSAGE when the configuration is loaded.
///
/// TYPE is `MESSAGE`, `WARNING` or `ERROR`. With `ERROR`, the configuration does not start.
///
/// ## Differences
/// With TYPE `WARNING`, Click does not start either, contrary to its documentation.
/// ```click
/// Message("This configuration needs nothing.");
/// InfiniteSource(LIMIT 1, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 1
/// ```
#[derive(Args)]
#[element(name = "Message", group = "control", ports = "0/0", see = "Script")]
pub struct MessageArgs {
    /// Text to print.
    #[arg(position)]
    message: String,
    /// `MESSAGE`, `WARNING` or `ERROR`.
    #[arg(position, default = "MESSAGE")]
    r#type: Word,
}

pub struct Message;

impl Element for Message {
    type Args = MessageArgs;

    fn new(args: MessageArgs, setup: &mut Setup) -> Result<Message, SetupError> {
        match &*args.r#type.0 {
            "MESSAGE" => setup.notes.push(args.message),
            "WARNING" => setup.warn(args.message),
            "ERROR" => return Err(SetupError::new(args.message)),
            _ => return Err(SetupError::new("unrecognized message type")),
        }
        Ok(Message)
    }
}
