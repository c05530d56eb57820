//! The stacks that can serve any folder of PHP, by name: for `lab stacks`, `doctor`, `ab` and
//! `calibrate`. Experiments start theirs by hand, with what their comparison is about.

use std::path::Path;

use clap::ValueEnum;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::outboard::{Outboard, Setup};
use crate::stack::Stack;
use crate::{apache, builtin, nginx, varnish};

/// A way of serving a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Outboard in classic mode: a script per request.
    Outboard,
    /// nginx in front of php-fpm over a Unix socket.
    NginxFpm,
    /// The same without opcache.
    NginxFpmNoOpcache,
    /// nginx that keeps php-fpm's answers for ten minutes.
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

    /// Those that experiments compare on the same folder: they ought to be set up alike.
    pub fn alike() -> impl Iterator<Item = Self> {
        [Self::Outboard, Self::NginxFpm, Self::ApacheModPhp].into_iter()
    }

    /// The name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What it is, in a sentence.
    pub fn about(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }

    /// Starts it for a folder.
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

    /// The packages that have to be installed for it.
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
