//! The names of keys and buttons.

use winit::event::MouseButton;
use winit::keyboard::{Key, NamedKey};

/// A key's name: its letter or sign without shift, or a word.
pub(crate) fn of_key(key: &Key) -> Option<String> {
    let name = match key {
        Key::Character(text) => return Some(text.to_lowercase()),
        Key::Named(named) => match named {
            NamedKey::Shift => "Shift",
            NamedKey::Alt => "Alt",
            NamedKey::Control => "Control",
            NamedKey::Escape => "Escape",
            NamedKey::Enter => "Return",
            NamedKey::Tab => "Tab",
            NamedKey::Backspace => "BackSpace",
            NamedKey::Space => " ",
            NamedKey::ArrowUp => "Up",
            NamedKey::ArrowDown => "Down",
            NamedKey::ArrowLeft => "Left",
            NamedKey::ArrowRight => "Right",
            NamedKey::CapsLock => "CapsLock",
            NamedKey::Delete => "Delete",
            NamedKey::Home => "Home",
            NamedKey::End => "End",
            NamedKey::PageUp => "PageUp",
            NamedKey::PageDown => "PageDown",
            NamedKey::F1 => "F1",
            NamedKey::F2 => "F2",
            NamedKey::F3 => "F3",
            NamedKey::F4 => "F4",
            NamedKey::F5 => "F5",
            NamedKey::F6 => "F6",
            NamedKey::F7 => "F7",
            NamedKey::F8 => "F8",
            NamedKey::F9 => "F9",
            NamedKey::F10 => "F10",
            NamedKey::F11 => "F11",
            NamedKey::F12 => "F12",
            _ => return None,
        },
        Key::Unidentified(_) | Key::Dead(_) => return None,
    };
    Some(name.to_owned())
}

/// A mouse button's name.
pub(crate) fn of_button(button: MouseButton) -> Option<&'static str> {
    match button {
        MouseButton::Left => Some("LMB"),
        MouseButton::Middle => Some("MMB"),
        MouseButton::Right => Some("RMB"),
        MouseButton::Back | MouseButton::Forward | MouseButton::Other(_) => None,
    }
}
