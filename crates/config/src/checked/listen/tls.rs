//! The TLS settings of listeners.

use super::{Certificate, ClientAuthorities};
use crate::checked::Context;
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::Fault;

pub(super) fn certificates(
    table: &raw::Listen,
    step: &str,
    context: &mut Context<'_>,
) -> Vec<Certificate> {
    let read = |(index, written): (usize, &raw::Certificate)| {
        let index = index.to_string();
        let mut file = |key, path| context.file(&["listen", step, "tls", &index, key], path);
        let certificate = file("certificate", &written.certificate);
        let key = file("key", &written.key);
        Certificate { certificate, key, ocsp: written.ocsp.as_ref().map(|path| file("ocsp", path)) }
    };
    table.tls.iter().enumerate().map(read).collect()
}

pub(super) fn clients(
    table: &raw::Listen,
    step: &str,
    context: &mut Context<'_>,
) -> Option<ClientAuthorities> {
    let is_written = |context: &Context<'_>, key| context.places.wrote(&["listen", step, key]);
    if table.tls.is_empty() {
        for key in ["tls_minimum", "client_ca", "client_verify", "client_crl"] {
            if is_written(context, key) {
                let fault = Fault::new(format!("`{key}` needs a listener with TLS"));
                context.key(&["listen", step, key], Kind::BadValue, fault.hint("add `tls`"));
            }
        }
        return None;
    }
    let Some(authorities) = &table.client_ca else {
        for key in ["client_verify", "client_crl"] {
            if is_written(context, key) {
                let fault = Fault::new(format!("`{key}` has no effect without `client_ca`"));
                context.key(&["listen", step, key], Kind::BadValue, fault);
            }
        }
        return None;
    };
    let mut file = |key, path| context.file(&["listen", step, key], path);
    Some(ClientAuthorities {
        authorities: file("client_ca", authorities),
        revoked: table.client_crl.as_ref().map(|path| file("client_crl", path)),
        are_required: table.client_verify == raw::ClientVerify::Required,
    })
}
