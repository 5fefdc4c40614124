"""Japanese. Digits become Han numerals: the speller reads the counters behind those right, and behind digits wrong."""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from text.normalize import web
from text.normalize.amounts import SILENT
from text.normalize.han import ALONE, NAMES, NUMBER, HanNumerals, plain, writing
from text.normalize.numbers import in_breaths
from text.normalize.rules import DIGITS, MARK_RULES, apply, either, rule, straighten, tidy

_SCALES: Final = ((10**16, "京"), (10**12, "兆"), (10**8, "億"), (10**4, "万"), (1000, "千"), (100, "百"), (10, "十"))
_CODE_NAMES: Final = ("ゼロ", "イチ", "ニー", "サン", "ヨン", "ゴー", "ロク", "ナナ", "ハチ", "キュー")
_MINUTES: Final = (
    "ジュップン", "イップン", "ニフン", "サンプン", "ヨンプン", "ゴフン", "ロップン", "ナナフン", "ハップン",
    "キューフン",
)  # fmt: skip
_LETTERS: Final = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "エー ビー シー ディー イー エフ ジー エイチ アイ ジェイ ケー エル エム エヌ オー ピー キュー アール "
        "エス ティー ユー ブイ ダブリュー エックス ワイ ゼット".split(),
        strict=True,
    )
)
_KANA: Final = "ぁ-ゖァ-ヺー"
_HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff々"
_WAVES: Final = "~〜～"
_DASH: Final = rf"(?:[-–—]{{1,2}}| ?[{_WAVES}–—] ?)"


def normalize_ja(text: str) -> str:
    """Japanese prose without digits, units and signs; its marks and Latin words stay."""
    return tidy(apply(straighten(text), _RULES))


class _Japanese(HanNumerals):
    """Numbers without spaces, in Han; codes in kana, which no reader takes for a number."""

    __slots__ = ()

    def cardinal(self, number: int) -> str:
        """百十, 二千二十五; 八百 in kana, for alone it is read as a part of names."""
        return _counted(number).replace("八百", "ハッピャク")

    def digits(self, run: str) -> str:
        """ゼロキューゼロ; a long run with a comma after every fourth."""
        return "、".join("".join(_CODE_NAMES[int(digit)] for digit in part) for part in in_breaths(run))

    def decimals(self, run: str) -> str:
        """三点五, 三点イチヨン: a number of several signs would be read as a whole."""
        return NAMES[int(run)] if len(run) == 1 else self.digits(run)


@lru_cache(maxsize=4096)
def _counted(number: int) -> str:
    for size, name in _SCALES:
        if number >= size:
            head, rest = divmod(number, size)
            is_named_alone = head == 1 and size < 10**4
            return ("" if is_named_alone else _counted(head)) + name + (_counted(rest) if rest else "")
    return NAMES[number]


_JAPANESE: Final = _Japanese("ja", {".": "点", ",": "点"}, decimal_comma=False)

_WEB: Final = web.rules(
    web.Words(
        dot="ドット", at="アットマーク", slash="スラッシュ", dash="ハイフン", underscore="アンダーバー", colon="コロン",
        hashtag="ハッシュタグ", number="番号", version="バージョン",
    ),
    _JAPANESE,
)  # fmt: skip

_LABELS: Final = "番号|コード|電話|内線|TEL|Tel|暗証|ID|郵便|型番|品番"
_NOT_COUNTED: Final = rf"(?!\.?\d|,\d|[A-Za-z°%‰]|[{_HAN}人件個本枚円つ])"

_UNITS: Final = {
    "km": "キロメートル", "m": "メートル", "cm": "センチメートル", "mm": "ミリメートル", "µm": "マイクロメートル",
    "nm": "ナノメートル", "kg": "キログラム", "g": "グラム", "mg": "ミリグラム", "t": "トン", "L": "リットル",
    "l": "リットル", "ml": "ミリリットル", "mL": "ミリリットル", "dl": "デシリットル", "dL": "デシリットル",
    "m²": "平方メートル", "m2": "平方メートル", "km²": "平方キロメートル", "cm²": "平方センチメートル",
    "m³": "立方メートル", "m3": "立方メートル", "cm³": "立方センチメートル", "ha": "ヘクタール", "h": "時間", "s": "秒",
    "ms": "ミリ秒", "Hz": "ヘルツ", "kHz": "キロヘルツ", "MHz": "メガヘルツ", "GHz": "ギガヘルツ", "W": "ワット",
    "kW": "キロワット", "MW": "メガワット", "kWh": "キロワット時", "V": "ボルト", "kV": "キロボルト",
    "mA": "ミリアンペア", "mAh": "ミリアンペアアワー", "Ω": "オーム", "dB": "デシベル", "Pa": "パスカル",
    "hPa": "ヘクトパスカル", "kPa": "キロパスカル", "MPa": "メガパスカル", "kJ": "キロジュール", "cal": "カロリー",
    "kcal": "キロカロリー", "KB": "キロバイト", "MB": "メガバイト", "GB": "ギガバイト", "TB": "テラバイト",
    "bps": "ビーピーエス", "kbps": "キロビーピーエス", "Mbps": "メガビーピーエス", "Gbps": "ギガビーピーエス",
    "fps": "エフピーエス", "rpm": "アールピーエム", "in": "インチ", "ft": "フィート", "px": "ピクセル",
    "°C": "度", "°F": "度", "°": "度", "%": "パーセント", "‰": "パーミル",
}  # fmt: skip
_UNIT: Final = either(_UNITS)
_SPEEDS: Final = {"km/h": ("時速", "キロメートル"), "m/s": ("秒速", "メートル"), "m/min": ("分速", "メートル")}

_CURRENCIES: Final = {
    "¥": "円", "JPY": "円", "$": "ドル", "US$": "ドル", "USD": "ドル", "€": "ユーロ", "EUR": "ユーロ", "£": "ポンド",
    "GBP": "ポンド", "₩": "ウォン", "KRW": "ウォン", "CNY": "元", "RMB": "元", "₹": "ルピー", "฿": "バーツ",
    "A$": "オーストラリアドル", "AUD": "オーストラリアドル", "C$": "カナダドル", "CAD": "カナダドル",
}  # fmt: skip
_SIGN: Final = either(_CURRENCIES)
_NEXT: Final = rf"(?=(?:{_SIGN}|第|午[前後]|翌)?\d)"
_POWERS: Final = {"k": 3, "K": 3, "million": 6, "M": 6, "billion": 9, "B": 9, "bn": 9, "trillion": 12}
_AMOUNT: Final = rf"(?P<number>{NUMBER})(?P<scale>(?:[十百千]?[万億兆]|[百千]| ?(?:{either(_POWERS)})(?![A-Za-z\d]))?)"

_SYMBOLS: Final = {
    "&": "アンド", "+": "プラス", "=": "イコール", "==": "イコール", "×": "かける", "÷": "割る", "±": "プラスマイナス",
    "≈": "約", "≒": "ほぼ等しい", "≠": "ノットイコール", "!=": "ノットイコール", "≤": "以下", "<=": "以下", "≥": "以上",
    ">=": "以上", "<": "小なり", ">": "大なり", "→": "から", "⇒": "から", "->": "から", "=>": "から", "√": "ルート",
    "π": "パイ", "∞": "無限大", "°": "度", "²": "の二乗", "³": "の三乗", "%": "パーセント", "‰": "パーミル",
    "@": "アット", "#": "シャープ", "№": "ナンバー", "Ω": "オーム", "$": "ドル", "€": "ユーロ", "£": "ポンド",
    "¥": "円", "〒": "郵便番号", "※": "", "〆": "しめ",
}  # fmt: skip
_KNOWN: Final = {"2D": "ツーディー", "3D": "スリーディー", "4G": "フォージー", "5G": "ファイブジー"}
"""Names in which the digit is read in English."""


def _spelled(found: re.Match[str]) -> str:
    return re.sub(r"\d+", lambda run: _JAPANESE.digits(run[0]), found[0])


def _grouped(found: re.Match[str]) -> str:
    """A number of a phone, a card, a letter box: digit by digit, in the groups that are written."""
    groups = "、".join(_JAPANESE.digits(group) for group in re.findall(r"\d+", found[0]))
    return ("プラス" if found[0][0] == "+" else "") + groups


def _clock(found: re.Match[str]) -> str:
    hour, minute, second, half = int(found[1]), int(found[2] or 0), int(found[3] or 0), (found[4] or "").lower()
    part = {"": "", "a": "午前", "p": "午後"}[half]
    return f"{part}{hour}時" + (f"{minute}分" if minute or second else "") + (f"{second}秒" if second else "")


def _minutes(found: re.Match[str]) -> str:
    """Whole in kana, for "十分" is also "enough", and two minutes are read as two parts."""
    hundreds, rest = divmod(int(found[1]), 100)
    tens, last = divmod(rest, 10)
    if not rest:
        return f"{_JAPANESE.cardinal(hundreds * 100)}分"
    below = tens * 10 if last else tens * (tens > 1)  # the ten itself is in the kana
    above = hundreds * 100 + below
    return (_JAPANESE.cardinal(above) if above else "") + _MINUTES[last]


def _money(found: re.Match[str]) -> str:
    low, scale = found["low"], found["scale"].strip()
    start = f"{plain(_POWERS, low, scale if scale in _POWERS else '')}から" if low else ""
    return f"{start}{plain(_POWERS, found['number'], scale)}{_CURRENCIES[found['sign']]}"


def _nfkc(found: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", found[0])


_WRITING: Final = (
    rule("", r"[０-９Ａ-Ｚａ-ｚ₀-₉％￥＋＝＜＞＠＃＆㌀-㏟]|(?<=\d)[：．／，－](?=\d)|－(?=[\d０-９])", _nfkc),
    rule("", "[①-⑳Ⅰ-Ⅻ]", lambda found: str(int(unicodedata.numeric(found[0])))),
    *writing(_JAPANESE),
)
"""One way to write a number, whatever the text does."""

_PLACES: Final = (
    rule(
        "-/.",
        rf"{ALONE}([12]\d{{3}})([-/.])(0?[1-9]|1[0-2])\2(0?[1-9]|[12]\d|3[01])(?![\d_]|[-/.]\d)(?:T(?=\d))?",
        lambda found: f"{found[1]}年{int(found[3])}月{int(found[4])}日",
    ),
    rule(
        "-/",
        rf"{ALONE}((?:19|20)\d\d)[-/](0[1-9]|1[0-2])(?![\d_A-Za-z]|年| ?[-/=.][\d=]?)",
        lambda found: f"{found[1]}年{int(found[2])}月",
    ),
    rule(
        "/",
        rf"{ALONE}(0?[1-9]|1[0-2])/(0?[1-9]|[12]\d|3[01])(?= ?[(（][日月火水木金土](?:曜日?|・祝)?[)）])",
        lambda found: f"{int(found[1])}月{int(found[2])}日",
    ),
    rule("(（", r"(?<=日) ?[(（]([日月火水木金土])(?:曜日?|・祝)?[)）]", r"、\1曜日、"),
    rule("", f"(?<![A-Za-z\\d.])(?:{either(_KNOWN)})(?![A-Za-z\\d])", lambda found: _KNOWN[found[0]]),
    rule(
        ".",
        rf"{ALONE}\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?![\dA-Za-z]|\.\d)",
        lambda found: "ドット".join(map(_JAPANESE.digits, found[0].split("."))),
    ),
    rule("版バ", r"(?<=バージョン) ?[vV]\.? ?(?=\d)", ""),
    web.isolated(_WEB),
    rule("#", r"(?<![A-Za-z\d#&/])#(?=[^\W\d])", "ハッシュタグ"),
    rule("#№", r"(?<![A-Za-z\d#&/])[#№] ?(?=\d)", "ナンバー"),
)
"""Days and addresses."""

_CODES: Final = (
    rule("+", r"(?<![\dA-Za-z+])\+\d{1,3}(?:[ -]\d{1,11}){1,5}(?![\dA-Za-z])", _grouped),
    rule("0", rf"{ALONE}(?:[(（]0\d{{1,4}}[)）] ?|0\d{{1,4}}[ -])\d{{1,4}}[ -]?\d{{3,4}}(?![\d-])", _grouped),
    rule("0", rf"{ALONE}0\d{{9,10}}(?![\d-])", _spelled),
    rule("〒", r"〒 ?(\d{3})-?(\d{4})(?!\d)", lambda found: f"郵便番号、{_grouped(found)}"),
    rule(" ", rf"{ALONE}\d{{4}}(?: \d{{4}}){{2,4}}(?! ?\d)", _grouped),
    rule("-", rf"{ALONE}\d{{1,18}}(?:-\d{{1,18}}){{2,8}}(?![\dA-Za-z-])", _grouped),
    rule("-", r"(?<=[A-Za-z])(?:-\d{1,18}){2,8}(?![\d.])", lambda found: " " + _grouped(found)),
    rule(DIGITS, rf"(?:{_LABELS})[ ：:はが]{{0,3}}\d{{3,18}}(?:-\d{{1,6}})?{_NOT_COUNTED}", _spelled),
    rule("号", r"(?<![\d.])\d{3,4}(?=号室)", _spelled),
)
"""Digits that name something are no amounts."""

_TIMES: Final = (
    rule(
        ":",
        r"(?<![\d:.])([01]?\d|2[0-9]):([0-5]\d)(?::([0-5]\d))?(?![\d:]|\.\d)(?: ?([AaPp])\.?[Mm](?![A-Za-z]))?",
        _clock,
    ),
    rule("mM", r"(?<![\dA-Za-z:.])(1[0-2]|[1-9])()() ?([AaPp])\.?[Mm](?![A-Za-z])", _clock),
    rule(":", r"(?<=\d):(?=\d)", "対"),
)

_SPANS: Final = (
    rule("-", rf"(?<=\d) - (?={NUMBER}(?: |$|[=、。,?？)）]))", "マイナス"),
    rule("=", rf"(?<=[\da-zA-Z)])-(?={NUMBER}(?: ?[-+×÷*/] ?{NUMBER}){{0,4}} ?=)", "マイナス"),
    rule("-–—~〜～", rf"(?<=\d)((?:{_UNIT})?){_DASH}{_NEXT}", r"\1から"),
    rule("-–—~〜～", rf"(?<=\d)([{_HAN}]{{1,3}}|[{_KANA}]{{1,6}})(?: - |[-–—{_WAVES}]){_NEXT}", r"\1から"),
    rule(_WAVES, rf"(?<=[\d{_HAN}ァ-ヺA-Za-z])[{_WAVES}](?=[\d{_HAN}ァ-ヺA-Za-z])", "から"),
    rule(_WAVES, r"(?<=[時分日月年円])[~〜～](?=[\s、。)）]|$)", "から"),
    rule(_WAVES, rf"(?<=[{_KANA}])[{_WAVES}]+", "ー"),
    rule(
        "-",
        rf"(?:(?<![\w)\]%°.,:/-])|(?<=[はがのをにでと約]))-(?=(?:{_SIGN})?\d)|(?<=[{_HAN}])-(?={NUMBER} ?[%‰°度])",
        "マイナス",
    ),
    rule("^", r"(?<=\w)\^((?:マイナス)?\d{1,18})", r"の\1乗"),
)

_AMOUNTS: Final = (
    rule("", rf"(?<![A-Za-z])(?P<sign>{_SIGN}) ?(?:(?P<low>{NUMBER})から(?:{_SIGN})?)?{_AMOUNT}円?", _money),
    rule(DIGITS, rf"(?<![\d.A-Za-z])(?:(?P<low>{NUMBER})から)?{_AMOUNT} ?(?P<sign>{_SIGN})(?![A-Za-z\d])", _money),
    rule(
        "/",
        rf"(?<![\d.A-Za-z])(?:[時秒分]速)?({NUMBER}) ?({either(_SPEEDS)})(?![A-Za-z\d²])",
        lambda found: found[1].join(_SPEEDS[found[2]]),
    ),
    rule(
        DIGITS,
        rf"(?<![A-Za-z\d.])(?<![A-Za-z][ -])({NUMBER}) ?({_UNIT})(?![A-Za-z\d])",
        lambda found: found[1] + _UNITS[found[2]],
    ),
    rule("/", rf"(?<=[{_HAN}{_KANA}])/({_UNIT})(?![A-Za-z\d])", lambda found: f"毎{_UNITS[found[1]]}"),
    rule("/", r"(?<=[円回件本個人度ルーロ])/(?=[月年日時分秒人個本])", "毎"),
    rule(
        "/",
        r"(?<![\d/.])(?<![A-Za-z] )(?:(\d{1,6}+) )?(\d{1,9}+)/(\d{1,9}+)(?![\d/]|\.\d)",
        lambda found: (f"{found[1]}と" if found[1] else "") + f"{found[3]}分の{found[2]}",
    ),
    rule("分", r"(?<![\d.])(\d{1,4})分(?!の\d|[割類析布子身野岐])", _minutes),
    rule("xX*×", r"(?<=\d) ?[xX*×] ?(?=\d)", "かける"),
)

_WORDS: Final = (
    rule("-", rf"(?<=[{_HAN}{_KANA}])-(?=\d)", ""),
    rule("-", r"(?<=[A-Za-z])-(?=\d)|(?<=\d)-(?=[A-Za-z])", " "),
    rule(
        "",
        r"(?<![A-Za-z'&-])(?<![A-Za-z] )[A-Za-z](?![A-Za-z'&]|[ -][A-Za-z])",
        lambda found: _LETTERS[found[0].upper()],
    ),
    rule(DIGITS, rf"(?<=[A-Za-z])( ?)(\d{{3,18}}){_NOT_COUNTED}", lambda found: found[1] + _JAPANESE.code(found[2])),
    rule(DIGITS, r"\d++(?:\.\d++)*+", lambda found: _JAPANESE.number(found[0])),
    rule("&", r"(?<=[A-Za-z]) ?& ?(?=[A-Za-z])", " and "),
    rule("", f" ?({either(_SYMBOLS)}) ?", lambda found: _SYMBOLS[found[1]]),
    *MARK_RULES,
    rule("", f"[{re.escape(''.join(SILENT))}]", " "),
)
"""What is left of the digits and signs, and letters by their names."""

_RULES: Final = (*_WRITING, *_PLACES, *_CODES, *_TIMES, *_SPANS, *_AMOUNTS, *_WORDS)
