//! Toolkits, and how far their word can be trusted.

/// Toolkits that are treated apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Toolkit {
    Gtk3,
    Gtk4,
    Qt,
    Chromium,
    Gecko,
    LibreOffice,
    #[default]
    Other,
}

impl Toolkit {
    pub(super) fn named(app: &str, name: &str, version: &str) -> Self {
        match name {
            // LibreOffice lends GTK's bridge and calls itself by GTK's name.
            "gtk" | "VCL" if app == "soffice" => Self::LibreOffice,
            "gtk" | "GTK" | "gtk+" if version.starts_with('4') => Self::Gtk4,
            "gtk" | "GTK" | "gtk+" => Self::Gtk3,
            "Qt" => Self::Qt,
            "Chromium" => Self::Chromium,
            "Gecko" => Self::Gecko,
            "VCL" => Self::LibreOffice,
            _ => Self::Other,
        }
    }

    /// Whether `Cache.GetItems` answers with all that exists. Qt 5 always answers an empty list; GTK 4 lists what was
    /// walked before.
    pub(super) fn has_bulk(self) -> bool {
        !matches!(self, Self::Qt | Self::Gtk4)
    }

    /// Whether every change of a name or a state is announced.
    pub(super) fn announces_names(self) -> bool {
        matches!(self, Self::Chromium | Self::Gecko)
    }

    /// Whether it shows pages, which are replaced as a whole.
    pub(super) fn has_documents(self) -> bool {
        matches!(self, Self::Chromium | Self::Gecko)
    }

    /// Whether screen extents start at the window instead of at the screen.
    pub(super) fn extents_start_at_window(self) -> bool {
        self == Self::Gtk4
    }
}
