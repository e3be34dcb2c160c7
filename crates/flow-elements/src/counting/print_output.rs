//! The output of the printing elements: the log, or a file.

use core::cell::RefCell;

use element::Writer;
use element::arguments::FileName;
use element::prelude::*;

/// Output of the printing elements: the log, or a file.
#[derive(Default)]
pub(crate) struct PrintOutput {
    file: Option<RefCell<Box<dyn Writer>>>,
}

impl PrintOutput {
    /// Creates the file, if one was given.
    pub(crate) fn open(cx: &Context, path: Option<&FileName>) -> Result<PrintOutput, SetupError> {
        let Some(FileName(path)) = path else { return Ok(PrintOutput::default()) };
        let file = cx.environment().create(path, false);
        let file = file.map_err(|error| SetupError::new(format!("{path}: {error}")))?;
        Ok(PrintOutput { file: Some(RefCell::new(file)) })
    }

    /// Writes a line. Lines that the file does not accept are lost, as in Click.
    pub(crate) fn write(&self, cx: &Context, mut line: String) {
        match &self.file {
            Some(file) => {
                line.push('\n');
                let _ = file.borrow_mut().write(line.as_bytes());
            }
            None => cx.log(&line),
        }
    }

    /// Flushes the file.
    pub(crate) fn flush(&self) {
        if let Some(file) = &self.file {
            let _ = file.borrow_mut().flush();
        }
    }
}
