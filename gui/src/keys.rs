//! The names of keys and buttons.

use winit::event::{KeyEvent, MouseButton};
use winit::keyboard::{Key, KeyLocation, NamedKey};
use winit::platform::modifier_supplement::KeyEventExtModifierSupplement;

/// A key's name: its letter or sign without shift, or a word; behind it `_L` or `_R` if there are two of it, before it
/// `KP_` if it is a word on the number pad.
pub(crate) fn of_key(event: &KeyEvent) -> Option<String> {
    let named = match event.key_without_modifiers() {
        Key::Character(text) => return Some(text.to_lowercase()),
        // Without shift the tabulator is one, too.
        Key::Named(named) => named,
        Key::Unidentified(_) | Key::Dead(_) => match &event.logical_key {
            Key::Character(text) => return Some(text.to_lowercase()),
            Key::Named(named) => *named,
            Key::Unidentified(_) | Key::Dead(_) => return None,
        },
    };
    let name = word(named)?;
    Some(match event.location {
        KeyLocation::Right if is_twice(named) => format!("{name}_R"),
        _ if is_twice(named) => format!("{name}_L"),
        KeyLocation::Numpad => format!("KP_{name}"),
        _ => name.to_owned(),
    })
}

fn is_twice(key: NamedKey) -> bool {
    matches!(
        key,
        NamedKey::Shift | NamedKey::Alt | NamedKey::Control | NamedKey::Super
    )
}

fn word(key: NamedKey) -> Option<&'static str> {
    Some(match key {
        NamedKey::Shift => "Shift",
        NamedKey::Alt => "Alt",
        NamedKey::Control => "Control",
        NamedKey::Super => "Super",
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
        NamedKey::Insert => "Insert",
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
    })
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
