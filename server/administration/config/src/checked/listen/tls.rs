//! The TLS settings of listeners.

use crate::checked::context::Context;
use crate::diagnostic::Kind;
use crate::raw::{self, Certificate};
use crate::scalar::Fault;
use std::path::PathBuf;

/// The authorities of client certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuthorities {
    /// Their certificates in PEM.
    pub authorities: PathBuf,
    /// Their revocation lists in PEM.
    pub revoked: Option<PathBuf>,
    /// Whether clients without a valid certificate are refused in the handshake.
    pub are_required: bool,
}

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
    match &table.tls {
        raw::Tls::Files(files) => files.iter().enumerate().map(read).collect(),
        raw::Tls::Auto(_) => Vec::new(),
    }
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

/// Early data proves nothing about the client, so it is not for those that have to prove something.
pub(super) fn check_early_data(table: &raw::Listen, step: &str, context: &mut Context<'_>) {
    let fault = if table.tls.is_empty() {
        Fault::new("`early_data` needs a listener with TLS").hint("add `tls`")
    } else if table.protocol != raw::Protocol::Http {
        Fault::new("early data is for listeners of HTTP: it can be replayed")
    } else if table.client_ca.is_some() {
        Fault::new("early data is not accepted from clients with certificates")
            .hint("remove `early_data` or `client_ca`")
    } else {
        return;
    };
    context.value(&["listen", step, "early_data"], Kind::BadValue, fault);
}

#[cfg(test)]
mod tests {
    use crate::Config;
    use std::path::{Path, PathBuf};

    /// The errors of a configuration with these keys of a listener and of an app.
    fn errors(listener: &str, app: &str) -> String {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = format!(
            "[[listen]]\naddress = \"[::1]:1\"\n{listener}\n[app.site]\nroot = \"src\"\n{app}\n"
        );
        let config = Config::parse(&text, &directory.join("outboard.toml"));
        config.map_or_else(|errors| errors.to_string(), |_| String::new())
    }

    const TLS: &str = "tls = [{ certificate = \"Cargo.toml\", key = \"Cargo.toml\" }]";

    #[test]
    fn settings_of_clients_without_effect_are_errors() {
        for key in
            ["tls_minimum = \"1.3\"", "client_ca = \"Cargo.toml\"", "client_verify = \"optional\""]
        {
            assert!(errors(key, "").contains("needs a listener with TLS"), "{key}");
        }
        let alone = errors(&format!("{TLS}\nclient_verify = \"optional\""), "");
        assert!(alone.contains("has no effect without `client_ca`"), "{alone}");
        let required = errors(TLS, "require_client_certificate = true");
        assert!(required.contains("no listener requests certificates of clients"), "{required}");
        let missing = errors(&format!("{TLS}\nclient_ca = \"nowhere.pem\""), "");
        assert!(missing.contains("nowhere.pem"), "{missing}");
    }

    #[test]
    fn early_data_is_for_http_without_client_certificates() {
        assert_eq!(errors(&format!("{TLS}\nearly_data = true"), ""), "");
        for (listener, error) in [
            ("early_data = true".to_owned(), "needs a listener with TLS"),
            (format!("{TLS}\nearly_data = true\nclient_ca = \"Cargo.toml\""), "with certificates"),
        ] {
            assert!(errors(&listener, "").contains(error), "{listener}");
        }
    }

    #[test]
    fn clients_are_authenticated_as_configured() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = format!(
            "[[listen]]\naddress = \"[::1]:1\"\n{TLS}\ntls_minimum = \"1.3\"\nclient_ca = \"Cargo.toml\"\n\
             client_crl = \"Cargo.toml\"\n[app.site]\nroot = \"src\"\nrequire_client_certificate = true\n"
        );
        let config = Config::parse(&text, &directory.join("outboard.toml")).unwrap();
        let listener = &config.listeners[0];
        let clients = listener.clients.as_ref().unwrap();
        assert!(listener.requires_tls13 && clients.are_required);
        let file: PathBuf = directory.join("Cargo.toml");
        assert_eq!((&clients.authorities, clients.revoked.as_ref()), (&file, Some(&file)));
        assert!(config.apps[0].requires_client_certificate);
    }
}
