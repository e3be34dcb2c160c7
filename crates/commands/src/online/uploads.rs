//! Uploads the files of a request before the request itself, as they are and each once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use api::client::ClientError;
use api::{
    CreateBox, CreateService, ErrorReason, File, ImageSource, Install, Stack, UploadName, UploadedFile,
    Value, operation,
};

use super::client::Client;
use crate::error::CommandError;

/// A request with files.
pub(crate) trait WithFiles {
    /// Its files, beside those that were uploaded.
    fn files(&mut self) -> Vec<(&mut Vec<File>, &mut Vec<UploadedFile>)>;
}

impl WithFiles for CreateBox {
    fn files(&mut self) -> Vec<(&mut Vec<File>, &mut Vec<UploadedFile>)> {
        vec![(&mut self.files, &mut self.uploads)]
    }
}

impl WithFiles for CreateService {
    fn files(&mut self) -> Vec<(&mut Vec<File>, &mut Vec<UploadedFile>)> {
        self.instance.files()
    }
}

impl WithFiles for Install {
    fn files(&mut self) -> Vec<(&mut Vec<File>, &mut Vec<UploadedFile>)> {
        vec![(&mut self.files, &mut self.uploads)]
    }
}

impl WithFiles for Stack {
    fn files(&mut self) -> Vec<(&mut Vec<File>, &mut Vec<UploadedFile>)> {
        let instances = self.services.iter_mut().map(|service| &mut service.instance);
        let all = self.boxes.iter_mut().chain(instances);
        all.map(|request| (&mut request.files, &mut request.uploads)).collect()
    }
}

/// The uploads of a request. Dropping it removes those that the request has not installed.
#[must_use = "dropping it removes the uploads"]
pub(crate) struct Uploads<'c> {
    client: &'c Client,
    names: HashMap<Vec<u8>, UploadName>,
}

impl<'c> Uploads<'c> {
    /// Uploads the files of a request, and replaces them by their uploads. If the caller may not upload files, as a reader who
    /// compares a stack, they stay in the request.
    pub(crate) fn new(client: &'c Client, request: &mut impl WithFiles) -> Result<Self, CommandError> {
        let mut uploads = Uploads { client, names: HashMap::new() };
        for (files, uploaded) in request.files() {
            for file in std::mem::take(files) {
                match uploads.upload(file)? {
                    Sent::Uploaded(upload) => uploaded.push(upload),
                    Sent::Denied(file) => files.push(file),
                }
            }
        }
        Ok(uploads)
    }

    /// Uploads a file, unless its contents are uploaded already.
    fn upload(&mut self, file: File) -> Result<Sent, CommandError> {
        let File { name, contents } = file;
        if let Some(upload) = self.names.get(&contents.0) {
            return Ok(Sent::Uploaded(UploadedFile { name, upload: upload.clone() }));
        }
        let upload = UploadName::of_number(RandomState::new().hash_one(std::process::id()));
        match self.client.send(&operation::UPLOAD, &[upload.as_str()], contents.0.as_slice()) {
            Ok(()) => {
                self.names.insert(contents.0, upload.clone());
                Ok(Sent::Uploaded(UploadedFile { name, upload }))
            }
            Err(error) if is_denied(&error) => Ok(Sent::Denied(File { name, contents })),
            Err(error) => Err(error),
        }
    }

    /// Uploads an image, and names its upload.
    pub(crate) fn add_image(&mut self, image: Vec<u8>) -> Result<ImageSource, CommandError> {
        match self.upload(File { name: String::new(), contents: Value(image) })? {
            Sent::Uploaded(UploadedFile { upload, .. }) => Ok(ImageSource::Upload(upload)),
            Sent::Denied(_) => Err(CommandError::ImageUpload),
        }
    }

    /// The request has installed the files, which removes the uploads.
    pub(crate) fn installed(mut self) {
        self.names.clear();
    }
}

/// What became of a file.
enum Sent {
    Uploaded(UploadedFile),
    /// The caller may not upload files.
    Denied(File),
}

fn is_denied(error: &CommandError) -> bool {
    matches!(error, CommandError::Client(ClientError::Api(reply)) if reply.reason == Some(ErrorReason::NoRight))
}

impl Drop for Uploads<'_> {
    fn drop(&mut self) {
        for name in self.names.values() {
            // The daemon removes it later, or has ended.
            let _ = self.client.ask(&operation::REMOVE_UPLOAD, &[name.as_str()]);
        }
    }
}
