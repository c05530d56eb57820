//! The stacks that can serve any PHP directory, by name: for `lab stacks`, `doctor`, `ab` and
//! `calibrate`. Experiments start their stacks with settings of their own.

use std::path::Path;

use clap::ValueEnum;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::outboard::{Outboard, Setup};
use crate::stack::Stack;
use crate::{apache, builtin, nginx, varnish};

/// A stack that serves a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Outboard in classic mode: a script per request.
    Outboard,
    /// nginx in front of php-fpm over a Unix socket.
    NginxFpm,
    /// The same without opcache.
    NginxFpmNoOpcache,
    /// nginx that caches php-fpm's responses for ten minutes.
    NginxFastcgiCache,
    /// Varnish in front of nginx and php-fpm.
    Varnish,
    /// Apache prefork with mod_php.
    ApacheModPhp,
    /// PHP's own development server.
    PhpServer,
}

impl Kind {
    /// All of them.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// The stacks that experiments compare on the same directory, so their settings should be
    /// equal.
    pub fn alike() -> impl Iterator<Item = Self> {
        [Self::Outboard, Self::NginxFpm, Self::ApacheModPhp].into_iter()
    }

    /// The name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Its description, one sentence.
    pub fn about(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }

    /// Starts it for a directory.
    pub fn start(self, lab: &mut Lab, root: &Path) -> Result<Stack> {
        match self {
            Self::Outboard => {
                let setup = Setup::classic(lab, root);
                let missing =
                    || Error::MissingProgram { program: "outboard".into(), package: "outboard" };
                Ok(Outboard::launch(lab, &setup)?.ok_or_else(missing)?.stack)
            }
            Self::NginxFpm => nginx::with_fpm(lab, root),
            Self::NginxFpmNoOpcache => nginx::with_fpm_uncached(lab, root),
            Self::NginxFastcgiCache => nginx::with_fastcgi_cache(lab, root),
            Self::Varnish => varnish::with_fpm(lab, root),
            Self::ApacheModPhp => apache::with_mod_php(lab, root, apache::PROCESSES),
            Self::PhpServer => builtin::server(lab, root),
        }
    }

    /// The packages that it needs.
    pub fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Outboard => &[],
            Self::NginxFpm | Self::NginxFpmNoOpcache | Self::NginxFastcgiCache => {
                &["nginx-light", "php-fpm"]
            }
            Self::Varnish => &["varnish", "nginx-light", "php-fpm"],
            Self::ApacheModPhp => &["apache2", "libapache2-mod-php"],
            Self::PhpServer => &["php-cli"],
        }
    }
}
