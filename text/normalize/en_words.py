"""English nouns and names: what units, currencies, marks and abbreviations are called."""

from typing import Final

from text.normalize.amounts import Currency, Lexicon
from text.normalize.numbers import Noun, Numerals
from text.normalize.web import Words


def _plural(name: str) -> Noun:
    return Noun(name, name + "s")


_METRIC: Final = {
    "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter", "µm": "micrometer", "nm": "nanometer",
    "kg": "kilogram", "g": "gram", "mg": "milligram", "µg": "microgram", "l": "liter", "L": "liter",
    "ml": "milliliter", "mL": "milliliter", "cl": "centiliter", "ha": "hectare",
    "h": "hour", "hr": "hour", "hrs": "hour", "min": "minute", "mins": "minute", "s": "second", "sec": "second",
    "secs": "second", "ms": "millisecond", "µs": "microsecond", "ns": "nanosecond",
    "kB": "kilobyte", "KB": "kilobyte", "MB": "megabyte", "GB": "gigabyte", "TB": "terabyte", "PB": "petabyte",
    "KiB": "kibibyte", "MiB": "mebibyte", "GiB": "gibibyte", "TiB": "tebibyte",
    "W": "watt", "mW": "milliwatt", "kW": "kilowatt", "MW": "megawatt", "GW": "gigawatt", "V": "volt",
    "mV": "millivolt", "kV": "kilovolt", "mA": "milliamp", "Ω": "ohm", "Pa": "pascal",
    "kPa": "kilopascal", "hPa": "hectopascal", "kJ": "kilojoule", "cal": "calorie",
    "kcal": "kilocalorie", "dB": "decibel", "px": "pixel", "mi": "mile", "yd": "yard", "yds": "yard", "lb": "pound",
    "lbs": "pound", "tsp": "teaspoon", "tbsp": "tablespoon", "oz": "ounce", "gal": "gallon", "°": "degree",
}  # fmt: skip

_OTHER: Final = {
    "°C": Noun("degree Celsius", "degrees Celsius"),
    "°F": Noun("degree Fahrenheit", "degrees Fahrenheit"),
    "ft": Noun("foot", "feet"),
    "in": Noun("inch", "inches"),
    "Hz": Noun("hertz", "hertz"),
    "kHz": Noun("kilohertz", "kilohertz"),
    "MHz": Noun("megahertz", "megahertz"),
    "GHz": Noun("gigahertz", "gigahertz"),
    "km/h": Noun("kilometer per hour", "kilometers per hour"),
    "kmh": Noun("kilometer per hour", "kilometers per hour"),
    "kph": Noun("kilometer per hour", "kilometers per hour"),
    "mph": Noun("mile per hour", "miles per hour"),
    "m/s": Noun("meter per second", "meters per second"),
    "kbps": Noun("kilobit per second", "kilobits per second"),
    "Mbps": Noun("megabit per second", "megabits per second"),
    "Gbps": Noun("gigabit per second", "gigabits per second"),
    "MB/s": Noun("megabyte per second", "megabytes per second"),
    "GB/s": Noun("gigabyte per second", "gigabytes per second"),
    "fps": Noun("frame per second", "frames per second"),
    "rpm": Noun("revolution per minute", "revolutions per minute"),
    "bpm": Noun("beat per minute", "beats per minute"),
    "dpi": Noun("dot per inch", "dots per inch"),
    "ppm": Noun("part per million", "parts per million"),
    "mpg": Noun("mile per gallon", "miles per gallon"),
    "kWh": Noun("kilowatt hour", "kilowatt hours"),
    "Wh": Noun("watt hour", "watt hours"),
    "mAh": Noun("milliamp hour", "milliamp hours"),
    "hp": Noun("horsepower", "horsepower"),
    "psi": Noun("P S I", "P S I"),
    "x": Noun("time", "times"),
    "X": Noun("time", "times"),
    "¢": Noun("cent", "cents"),
    "‰": Noun("per mille", "per mille"),
}

_AREAS: Final = {"mm": "millimeter", "cm": "centimeter", "m": "meter", "km": "kilometer", "ft": "foot", "in": "inch"}


def _powers() -> dict[str, Noun]:
    found: dict[str, Noun] = {}
    for sign, name in _AREAS.items():
        many = {"foot": "feet", "inch": "inches"}.get(name, name + "s")
        for power, word in {"2": "square", "3": "cubic"}.items():
            noun = Noun(f"{word} {name}", f"{word} {many}")
            found |= {f"{sign}{'²' if power == '2' else '³'}": noun, f"{sign}^{power}": noun}
            if len(sign) > 1 or sign == "m":
                found[f"{sign}{power}"] = noun
    return found


_DOLLAR: Final = Currency(_plural("dollar"), _plural("cent"))
_POUND: Final = Currency(_plural("pound"), Noun("penny", "pence"))
_EURO: Final = Currency(_plural("euro"), _plural("cent"))

_YEN: Final = Currency(Noun("yen", "yen"))

LEXICON: Final = Lexicon(
    numerals=Numerals("en", {".": "point", ",": "point"}, decimal_comma=False),
    units={sign: _plural(name) for sign, name in _METRIC.items()} | _OTHER | _powers(),
    glued=frozenset({"in", "x", "X"}),
    currencies={
        "$": _DOLLAR, "US$": _DOLLAR, "USD": Currency(_plural("U.S. dollar"), _plural("cent")), "€": _EURO,
        "EUR": _EURO, "£": _POUND, "GBP": _POUND, "¥": _YEN, "JPY": _YEN,
        "CNY": Currency(Noun("yuan", "yuan")), "RMB": Currency(Noun("yuan", "yuan")),
        "₹": Currency(_plural("rupee")), "INR": Currency(_plural("rupee")),
        "CHF": Currency(_plural("Swiss franc")), "A$": Currency(_plural("Australian dollar"), _plural("cent")),
        "C$": Currency(_plural("Canadian dollar"), _plural("cent")),
        "CAD": Currency(_plural("Canadian dollar"), _plural("cent")),
    },
    scales=("thousand", "million", "billion", "trillion"),
    suffixes={
        "k": Noun("thousand", "thousand"), "K": Noun("thousand", "thousand"),
        "M": Noun("million", "million"), "m": Noun("million", "million"),
        "B": Noun("billion", "billion"), "bn": Noun("billion", "billion"), "mn": Noun("million", "million"),
    },
    percent="percent", to="to", minus="minus", per="per", both="and",
    symbols={
        "&": "and", "+": "plus", "=": "equals", "×": "times", "÷": "divided by", "±": "plus or minus",
        "≈": "approximately", "≠": "does not equal", "≤": "is at most", "≥": "is at least", "<": "less than",
        ">": "greater than", "§": "section", "%": "percent", "‰": "per mille", "°": "degrees", "→": "to",
        "√": "square root of", "π": "pi", "∞": "infinity", "Ω": "ohms", "№": "number",
        "©": "copyright", "€": "euros", "$": "dollars", "£": "pounds", "¥": "yen", "₹": "rupees",
        "¢": "cents", "²": "squared", "³": "cubed", "@": "at", "/": "slash", "|": ",",
        "~": "", "•": "", "¹": "", "º": "",
        "ª": "", "¬": "", "¦": "", "¶": "", "¤": "", "¨": "", "´": "", "¸": "", "¯": "",
    },
)  # fmt: skip

WEB: Final = Words(
    dot="dot",
    at="at",
    slash="slash",
    dash="dash",
    underscore="underscore",
    colon="colon",
    hashtag="hashtag",
    number="number",
    version="version",
)

ABBREVIATIONS: Final = {
    "Mr": "Mister", "Mrs": "Missus", "Messrs": "Messieurs", "Prof": "Professor", "Jr": "Junior", "Sr": "Senior",
    "Capt": "Captain", "Lt": "Lieutenant", "Col": "Colonel", "Gen": "General", "Sgt": "Sergeant", "Sen": "Senator",
    "Gov": "Governor", "Rev": "Reverend", "Hon": "Honorable", "Mt": "Mount", "Ave": "Avenue", "Blvd": "Boulevard",
    "Rd": "Road", "Inc": "Incorporated", "Ltd": "Limited", "Corp": "Corporation", "Dept": "Department",
    "Univ": "University", "approx": "approximately", "Approx": "Approximately", "etc": "et cetera", "vs": "versus",
    "Jan": "January", "Feb": "February", "Apr": "April", "Aug": "August", "Sept": "September", "Oct": "October",
    "Nov": "November", "Dec": "December", "Mon": "Monday", "Tue": "Tuesday", "Wed": "Wednesday", "Thu": "Thursday",
    "Fri": "Friday", "min": "minimum", "max": "maximum", "incl": "including", "cf": "compare", "al": "others",
    "e.g": "for example", "E.g": "For example", "i.e": "that is", "I.e": "That is", "a.k.a": "also known as",
    "ca": "circa", "Bros": "Brothers", "dept": "department", "govt": "government", "est": "estimated",
}  # fmt: skip
"""Without their last dot."""

COUNTED: Final = {
    "No": "number", "no": "number", "Nos": "numbers", "Nr": "number", "p": "page", "pp": "pages", "Fig": "figure",
    "fig": "figure", "Figs": "figures", "Vol": "volume", "vol": "volume", "Ch": "chapter", "ch": "chapter",
    "Sec": "section", "sec": "section", "Eq": "equation", "eq": "equation", "Art": "article", "art": "article",
    "App": "appendix", "Rm": "room", "Ext": "extension", "ext": "extension", "Tel": "telephone",
}  # fmt: skip
"""Only before a number, for some of them are words or ends of sentences elsewhere."""

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip

SOFTWARE: Final = (
    "Python", "Java", "Node", "js", "iOS", "iPadOS", "macOS", "Android", "Ubuntu", "Debian", "Fedora", "Windows",
    "PHP", "Ruby", "Perl", "Rust", "Go", "CUDA", "PyTorch", "TensorFlow", "Linux", "Django", "Swift", "Kotlin", "GCC",
    "Clang", "Chrome", "Firefox", "Safari", "PostgreSQL", "Postgres", "MySQL", "Redis", "Kubernetes", "Docker", "TLS",
    "version", "Version", "release", "Release", "kernel",
)  # fmt: skip
"""A number behind one of these is a version: 3.11 is three point eleven."""

KNOWN_CAPITALS: Final = frozenset(
    "AI API ATM AWS BBC CEO CFO CIA CNN CPU CSS CTO DIY DNA DVD EU FAQ FBI FDA GDP GMT GPS GPU GUI HIV HTML HTTP HTTPS "
    "IBM ID IDE IMF IP IQ ISO JPEG JSON LAN LED LLM MBA MIT NASA NATO NBA NFL NGO NHL OK OS PC PDF PIN PR QR RAM ROM "
    "RSS SDK SIM SMS SQL SSD SSH SSL TTS TV UFO UK UN UNESCO UNICEF URL USA USB UTC UX VIP VPN VR WIFI XML YAML "
    "ASAP PM TCP UDP DNS IEEE MRI CT UI USD EUR GBP".split()
)
"""They stay capitals where everything around them is shouted."""

RULERS: Final = frozenset({
    "Louis", "Henry", "Elizabeth", "Charles", "George", "Edward", "Richard", "William", "James", "Paul", "Pope",
    "Benedict", "Pius", "Leo", "Philip", "Alfonso", "Carlos", "Frederick", "Wilhelm", "Napoleon", "Nicholas", "Peter",
    "Catherine", "Alexander", "Ivan", "Francis", "Gregory", "Clement", "Innocent", "Urban", "Ptolemy", "Mary", "Felipe",
    "Fernando", "Ramesses", "Harald", "Christian", "Otto", "Umberto", "Leopold", "Albert", "Baldwin", "Cleopatra",
})  # fmt: skip
"""A Roman numeral behind one of these counts people of that name."""

CHAPTERS: Final = frozenset({
    "chapter", "part", "volume", "act", "scene", "section", "war", "type", "phase", "book", "title", "article",
    "bowl", "class", "grade", "level", "stage", "figure", "table", "appendix", "episode", "season", "mark", "group",
    "factor", "schedule", "annex", "vol",
})  # fmt: skip
"""A Roman numeral behind one of these is a number, even a single letter."""
