//! [`Certificates`]: the certificates of a server by server name (RFC 6066 3), with OCSP responses.
//!
//! Read with the settings of a listener, and read again while they are used, since other programs renew the files.
//! Invariants: keys match their certificates; a client without a server name, or with an unknown one, gets the first
//! certificate; a file that has become invalid changes nothing.

use crate::options::{CertificateFiles, Open, invalid};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The longest OCSP response that is read.
const MAX_OCSP_BYTES: u64 = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Certificates {
    present: RwLock<Arc<[Certificate]>>,
    /// The files of each, in the same order.
    sources: Mutex<Vec<FilesInUse>>,
}

impl Certificates {
    pub(crate) fn read(files: &[CertificateFiles], open: Open<'_>) -> Result<Self, String> {
        let mut sources: Vec<FilesInUse> = files.iter().map(FilesInUse::new).collect();
        let present: Result<_, _> = sources.iter_mut().map(|source| source.first(open)).collect();
        Ok(Self { present: RwLock::new(present?), sources: Mutex::new(sources) })
    }

    fn present(&self) -> Arc<[Certificate]> {
        self.present.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.present().len()
    }

    /// The index of the certificate for a name: an exact match, a wildcard, or the first.
    pub(crate) fn index_of(&self, name: &str) -> usize {
        index_of(&self.present(), name)
    }

    /// Whether a certificate other than this one is valid for the name.
    pub(crate) fn is_for_another(&self, index: usize, name: &str) -> bool {
        let present = self.present();
        let covers = |certificate: &Certificate| certificate.covers(name);
        !present.get(index).is_some_and(covers) && present.iter().any(covers)
    }

    /// Reads files again that have changed. Each item is something to be logged: a certificate that was
    /// renewed, or why a file cannot be used.
    pub(crate) fn refresh(&self, open: Open<'_>) -> Vec<Result<String, String>> {
        let (mut sources, mut notes) =
            (self.sources.lock().unwrap_or_else(PoisonError::into_inner), Vec::new());
        let mut present = self.present().to_vec();
        for (source, certificate) in sources.iter_mut().zip(&mut present) {
            notes.extend(source.refresh(certificate, open));
        }
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = present.into();
        notes
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let present = self.present();
        let index = hello.server_name().map_or(0, |name| index_of(&present, name));
        Some(present.get(index)?.certified.clone())
    }
}

fn index_of(present: &[Certificate], name: &str) -> usize {
    let of = |name: &str| present.iter().position(|certificate| certificate.has_name(name));
    of(name).or_else(|| of(&wildcard_of(name)?)).unwrap_or(0)
}

/// A wildcard stands for one label (RFC 9525 6.3).
fn wildcard_of(name: &str) -> Option<String> {
    name.split_once('.').map(|(_, above)| format!("*.{above}"))
}

#[derive(Debug, Clone)]
struct Certificate {
    /// In lower case, as rustls passes server names.
    names: Arc<[String]>,
    certified: Arc<CertifiedKey>,
}

impl Certificate {
    fn read(files: &CertificateFiles, open: Open<'_>) -> Result<Self, String> {
        let opened = |path: &Path| open(path).map_err(|error| invalid(path, &error));
        let chain = CertificateDer::pem_reader_iter(BufReader::new(opened(&files.chain)?))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| invalid(&files.chain, &error))?;
        let Some(first) = chain.first() else {
            return Err(invalid(&files.chain, &"there is no certificate in it"));
        };
        let names = webpki::EndEntityCert::try_from(first)
            .map_err(|error| invalid(&files.chain, &error))?
            .valid_dns_names()
            .map(str::to_ascii_lowercase)
            .collect();
        let key = PrivateKeyDer::from_pem_reader(BufReader::new(opened(&files.key)?))
            .map_err(|error| invalid(&files.key, &error))?;
        let provider = aws_lc_rs::default_provider();
        let certified =
            CertifiedKey::from_der(chain, key, &provider).map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => {
                    let chain = files.chain.display();
                    invalid(
                        &files.key,
                        &format!("this is not the key of the certificate in {chain}"),
                    )
                }
                error => invalid(&files.key, &error),
            })?;
        Ok(Self { names, certified: Arc::new(certified) })
    }

    fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|theirs| theirs == name)
    }

    /// Whether the certificate is valid for this name, exactly or by wildcard.
    fn covers(&self, name: &str) -> bool {
        self.has_name(name) || wildcard_of(name).is_some_and(|any| self.has_name(&any))
    }
}

/// Device, inode, time of change and size of a file.
type Stamp = [u64; 5];

fn stamp_of(file: &File) -> std::io::Result<Stamp> {
    let facts = file.metadata()?;
    let (changed_s, changed_ns) = (facts.mtime() as u64, facts.mtime_nsec() as u64);
    Ok([facts.dev(), facts.ino(), changed_s, changed_ns, facts.size()])
}

/// Chain and key as they were looked at; `None` if one of them cannot be opened.
type Look = Option<[Stamp; 2]>;

/// The files of a certificate, as they were read last.
#[derive(Debug)]
struct FilesInUse {
    files: CertificateFiles,
    /// The pair that is in use, or that was reported as unusable.
    pair: Look,
    /// A pair that could not be used at the last look: another program may be about to write the second file.
    unusable: Option<Look>,
    /// The response at the last look; the inner `None`: it could not be opened.
    ocsp: Option<Option<Stamp>>,
}

impl FilesInUse {
    fn new(files: &CertificateFiles) -> Self {
        Self { files: files.clone(), pair: None, unusable: None, ocsp: None }
    }

    fn first(&mut self, open: Open<'_>) -> Result<Certificate, String> {
        self.pair = self.look(open);
        let mut certificate = Certificate::read(&self.files, open)?;
        self.refresh_ocsp(&mut certificate, open)?;
        Ok(certificate)
    }

    fn look(&self, open: Open<'_>) -> Look {
        let stamp = |path: &Path| open(path).and_then(|file| stamp_of(&file)).ok();
        Some([stamp(&self.files.chain)?, stamp(&self.files.key)?])
    }

    /// Replaces what has changed; returns what is to be logged.
    fn refresh(
        &mut self,
        present: &mut Certificate,
        open: Open<'_>,
    ) -> Vec<Result<String, String>> {
        let pair = self.refresh_pair(present, open).transpose();
        pair.into_iter().chain(self.refresh_ocsp(present, open).err().map(Err)).collect()
    }

    /// An unusable pair is reported at the second look, once.
    fn refresh_pair(
        &mut self,
        present: &mut Certificate,
        open: Open<'_>,
    ) -> Result<Option<String>, String> {
        let pair = self.look(open);
        if pair == self.pair {
            self.unusable = None;
            return Ok(None);
        }
        match Certificate::read(&self.files, open) {
            Ok(certificate) => {
                // Without the response for its predecessor, until there is another one.
                *present = certificate;
                (self.pair, self.unusable) = (pair, None);
                Ok(Some(format!("{}: the certificate was renewed", self.files.chain.display())))
            }
            Err(fault) if self.unusable == Some(pair) => {
                (self.pair, self.unusable) = (pair, None);
                Err(format!("{fault}; the certificate that was read before remains"))
            }
            Err(_) => {
                self.unusable = Some(pair);
                Ok(None)
            }
        }
    }

    /// A response that is invalid, or is not there any more, is reported once.
    fn refresh_ocsp(&mut self, present: &mut Certificate, open: Open<'_>) -> Result<(), String> {
        let Some(path) = &self.files.ocsp else { return Ok(()) };
        let failed = |error: std::io::Error| invalid(path, &error);
        let opened = open(path).and_then(|file| Ok((stamp_of(&file)?, file)));
        let stamp = opened.as_ref().ok().map(|(stamp, _)| *stamp);
        if self.ocsp.replace(stamp) == Some(stamp) {
            return Ok(());
        }
        let (_, file) = opened.map_err(failed)?;
        let mut response = Vec::new();
        file.take(MAX_OCSP_BYTES + 1).read_to_end(&mut response).map_err(failed)?;
        if !is_successful(&response) {
            return Err(invalid(path, &"this is not a successful OCSP response in DER"));
        }
        let successor = CertifiedKey { ocsp: Some(response), ..(*present.certified).clone() };
        present.certified = Arc::new(successor);
        Ok(())
    }
}

/// Whether it is one sequence (RFC 6960 4.2.1) that begins with the status `successful`.
fn is_successful(response: &[u8]) -> bool {
    const SUCCESSFUL: [u8; 3] = [0x0a, 1, 0];
    let (length, content) = match response {
        [0x30, 0x82, a, b, rest @ ..] => (usize::from(u16::from_be_bytes([*a, *b])), rest),
        [0x30, 0x81, a, rest @ ..] => (usize::from(*a), rest),
        _ => return false,
    };
    content.len() == length && content.starts_with(&SUCCESSFUL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_successful_ocsp_responses_are_used() {
        let response = |status, rest: usize| {
            let content = [&[0x0a, 1, status][..], &vec![7; rest]].concat();
            let length = u16::try_from(content.len()).unwrap().to_be_bytes();
            [&[0x30, 0x82][..], &length, &content].concat()
        };
        assert!(is_successful(&response(0, 400)));
        // `tryLater`.
        assert!(!is_successful(&response(3, 400)));
        let whole = response(0, 400);
        assert!(!is_successful(&whole[..whole.len() - 1]));
        assert!(!is_successful(b"-----BEGIN OCSP RESPONSE-----"));
        assert!(!is_successful(b""));
    }
}
