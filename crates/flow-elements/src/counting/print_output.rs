//! The output of the printing elements: the log, or a file.

use core::any::Any;
use core::cell::RefCell;

use element::Writer;
use element::arguments::FileName;
use element::prelude::*;

/// Output of the printing elements: the log, or a file.
#[derive(Default)]
pub(crate) struct PrintOutput {
    file: Option<Rc<PrintFile>>,
}

/// A file to which all printing elements that name it write.
struct PrintFile {
    path: String,
    writer: RefCell<Box<dyn Writer>>,
}

impl PrintOutput {
    /// Has the router keep the order of lines among all elements with this output.
    pub(crate) fn keep_order(setup: &mut Setup, path: Option<&FileName>) {
        match path {
            None => setup.logs_packets = true,
            Some(FileName(path)) if path == "-" => setup.unbatched = true,
            Some(FileName(path)) => setup.line_file = Some(path.clone()),
        }
    }

    /// Creates the file, if one was given, unless another element did.
    pub(crate) fn open(cx: &Context, path: Option<&FileName>) -> Result<PrintOutput, SetupError> {
        let Some(FileName(path)) = path else { return Ok(PrintOutput::default()) };
        let file_of = |element| cx.runtime().export(element)?.downcast::<PrintFile>().ok();
        let found = (0..cx.element()).filter_map(file_of).find(|file| file.path == *path);
        if let Some(file) = found {
            return Ok(PrintOutput { file: Some(file) });
        }
        let writer = cx.environment().create(path, false);
        let writer = writer.map_err(|error| SetupError::new(format!("{path}: {error}")))?;
        let file = PrintFile { path: path.clone(), writer: RefCell::new(writer) };
        Ok(PrintOutput { file: Some(Rc::new(file)) })
    }

    /// The file, for other elements that write to it.
    pub(crate) fn export(&self) -> Option<Rc<dyn Any>> {
        let file: Rc<dyn Any> = self.file.clone()?;
        Some(file)
    }

    /// Writes a line. Lines that the file does not accept are lost, as in Click.
    pub(crate) fn write(&self, cx: &Context, mut line: String) {
        match &self.file {
            Some(file) => {
                line.push('\n');
                let _ = file.writer.borrow_mut().write(line.as_bytes());
            }
            None => cx.log(&line),
        }
    }

    /// Flushes the file.
    pub(crate) fn flush(&self) {
        if let Some(file) = &self.file {
            let _ = file.writer.borrow_mut().flush();
        }
    }
}
