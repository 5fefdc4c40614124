"""Chinese, as it is read on the Mainland. Most rules only rewrite signs into Han; the last ones read the digits."""

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise
from typing import Final

from text.normalize import web
from text.normalize.amounts import SILENT
from text.normalize.han import ALONE, NAMES, NUMBER, HanNumerals, plain, writing
from text.normalize.numbers import in_breaths
from text.normalize.rules import DIGITS, MARK_RULES, apply, either, rule, straighten, tidy

_SCALES: Final = ((10**8, "亿"), (10**4, "万"), (1000, "千"), (100, "百"), (10, "十"))
_HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff"
_DASHES: Final = "-–—~～"
_DASH: Final = r"(?:[-–—]{1,2}| ?[~～–—] ?)"


def normalize_zh(text: str) -> str:
    """Chinese prose without digits, units and signs; its marks and Latin words stay."""
    return tidy(apply(straighten(text), _RULES))


class _Mandarin(HanNumerals):
    """Numbers without spaces; 两 for a two that leads thousands and more."""

    __slots__ = ()

    def cardinal(self, number: int) -> str:
        """一百一十, but 十一; 两千二百."""
        said = _counted(number)
        if said.startswith("一十"):
            return said[1:]
        return "两" + said[1:] if said.startswith(("二千", "二万", "二亿")) else said

    def digits(self, run: str) -> str:
        """Digit by digit; a long run with a comma after every fourth, and no last one alone."""
        return "，".join("".join(NAMES[int(digit)] for digit in part) for part in in_breaths(run))

    def code(self, run: str) -> str:
        """A number in a name: A四, S五百, A三八零."""
        is_round = run.endswith("00") and run[0] != "0" and len(run) <= 4
        return self.cardinal(int(run)) if is_round else super().code(run)


@lru_cache(maxsize=4096)
def _counted(number: int) -> str:
    for size, name in _SCALES:
        if number >= size:
            head, rest = divmod(number, size)
            zero = "零" if rest < size // 10 else ""
            return _counted(head) + name + (zero + _counted(rest) if rest else "")
    return NAMES[number]


_MANDARIN: Final = _Mandarin("zh", {".": "点", ",": "点"}, decimal_comma=False)

_WEB: Final = web.rules(
    web.Words(
        dot="点", at="艾特", slash="斜杠", dash="横杠", underscore="下划线", colon="冒号", hashtag="话题", number="号",
        version="版本",
    ),
    _MANDARIN,
)  # fmt: skip

_MEASURE: Final = (
    "[个位名天周块毛角斤克吨米升里件条张只支枝本辆台部家间座套双种类项段句首篇封幅颗粒片瓶杯碗盘盒包袋箱桶罐头匹口根把"
    "顶面扇所场局轮届批组队步遍趟回倍岁寸尺亩边方者国省市州县校党样侧端岸秒例起款宗度枚艘架株棵朵串束堆群伙股滴道题页章节门厅"
    "百千万亿瓦伏]|人(?!转)|年(?!级|生)|次(?![元方])|分(?![之裂])|点(?!\\d)|点(?=\\d{1,2}分)|元(?!一次)|成(?![为功立])"
    "|对(?!\\d)|室(?=\\d)|小时|星期|礼拜|刻钟|公[里斤顷]|[厘毫微纳]米|毫[克升秒]|[平立]方|英[寸尺里镑]|[美欧日港韩澳加]元|海里"
    "|摄氏|华氏|[KMGT]B(?![A-Za-z])"
)
"""What two of are 两. Not 月 日 号 楼 层 级 班 代 期, before which a two is the second."""

_NOT_COUNTED: Final = rf"(?!\.?\d|,\d|[A-Za-z°%‰]| ?(?:{_MEASURE}))"
_LABELS: Final = (
    "号码?|编号|[账帐卡]号|代[码号]|密码|验证码|邮编|电话|手机|热线|客服|传真|致电|拨打?|QQ群?|ID|航班|尾号|型号|车牌|房间"
    "|波音|空客"
)
_DATED: Final = r"\d{1,2}月|出生|生人|毕业|[初底末春夏秋冬款版]|世界杯|奥运"
_LASTED: Final = "[前后来多间内里之以了过级期寿代]|历史|时间|的(?:历史|时间|经验|婚姻|努力|生涯)"
_SEASON: Final = "赛季|[财学]年"

_UNITS: Final = {
    "km": "公里", "m": "米", "cm": "厘米", "mm": "毫米", "µm": "微米", "nm": "纳米", "kg": "千克", "g": "克",
    "mg": "毫克", "µg": "微克", "t": "吨", "L": "升", "l": "升", "ml": "毫升", "mL": "毫升", "m²": "平方米",
    "m2": "平方米", "㎡": "平方米", "km²": "平方公里", "cm²": "平方厘米", "m³": "立方米", "m3": "立方米",
    "cm³": "立方厘米", "ha": "公顷", "h": "小时", "min": "分钟", "s": "秒", "ms": "毫秒", "Hz": "赫兹", "kHz": "千赫",
    "MHz": "兆赫", "GHz": "吉赫", "W": "瓦", "kW": "千瓦", "MW": "兆瓦", "kWh": "千瓦时", "V": "伏", "kV": "千伏",
    "mA": "毫安", "mAh": "毫安时", "Ω": "欧姆", "dB": "分贝", "Pa": "帕", "hPa": "百帕", "kPa": "千帕", "MPa": "兆帕",
    "J": "焦耳", "kJ": "千焦", "kcal": "千卡", "KB": "KB", "MB": "MB", "GB": "GB", "TB": "TB", "Mbps": "兆比特每秒",
    "°C": "摄氏度", "°F": "华氏度", "°": "度",
}  # fmt: skip
_UNIT: Final = either(_UNITS)

_CURRENCIES: Final = {
    "¥": "元", "RMB": "元人民币", "CNY": "元人民币", "$": "美元", "US$": "美元", "USD": "美元", "€": "欧元",
    "EUR": "欧元", "£": "英镑", "GBP": "英镑", "HK$": "港元", "HKD": "港元", "NT$": "新台币", "JPY": "日元",
    "₩": "韩元", "KRW": "韩元", "₽": "卢布", "₹": "卢比", "฿": "泰铢", "A$": "澳元", "AUD": "澳元", "C$": "加元",
    "CAD": "加元",
}  # fmt: skip
_SIGN: Final = either(_CURRENCIES)
_NEXT: Final = rf"(?=(?:{_SIGN}|[第早晚-]|[上下]午|凌晨)?\d)"
_POWERS: Final = {
    "k": 3, "K": 3, "thousand": 3, "m": 6, "M": 6, "million": 6, "b": 9, "B": 9, "bn": 9, "billion": 9, "trillion": 12,
}  # fmt: skip
_AMOUNT: Final = (
    rf"(?P<number>{NUMBER})(?P<scale>(?:万亿|[十百千]?[万亿]|[百千]| ?(?:{either(_POWERS)})(?![A-Za-z\d]))?)"
)

_SYMBOLS: Final = {
    "&": "和", "+": "加", "=": "等于", "==": "等于", "×": "乘", "÷": "除以", "±": "正负", "≈": "约等于", "≠": "不等于",
    "!=": "不等于", "≤": "小于等于", "<=": "小于等于", "≥": "大于等于", ">=": "大于等于", "<": "小于", ">": "大于",
    "→": "到", "->": "到", "=>": "到", "√": "根号", "π": "派", "∞": "无穷大", "°": "度", "²": "平方", "³": "立方",
    "%": "百分号", "‰": "千分号", "@": "艾特", "§": "第", "№": "号", "Ω": "欧姆", "$": "美元", "€": "欧元", "£": "英镑",
    "¥": "元",
}  # fmt: skip
_SHARES: Final = {"%": "百分之", "‰": "千分之", "‱": "万分之"}
_CUTS: Final[dict[int, tuple[int, ...]]] = {11: (3, 7), 13: (2, 5, 9), 17: (6, 14), 18: (6, 14)}
"""Where a mobile number, without and with 86, and an identity card are cut into groups; by length."""


def _spelled(found: re.Match[str]) -> str:
    return re.sub(r"[-\d]+", lambda run: _MANDARIN.digits(run[0].replace("-", "")), found[0])


def _grouped(found: re.Match[str]) -> str:
    """Digit by digit, in the groups that are written or usual."""
    groups = re.findall(r"\d+", found[0])
    cuts = _CUTS.get(len(groups[-1]))
    if cuts:
        last = groups.pop()
        groups += [last[start:end] for start, end in pairwise((0, *cuts, len(last)))]
    said = "，".join(_MANDARIN.digits(group) for group in groups)
    return ("加" if found[0][0] == "+" else "") + said + ("X" if found[0][-1] in "Xx" else "")


def _clock(found: re.Match[str]) -> str:
    hour, minute, second, half = int(found[1]), found[2] or "0", found[3] or "0", (found[4] or "").lower()
    part = {"": "", "a": "上午", "p": "晚上" if 6 <= hour < 12 else "下午"}[half]
    minutes = f"{minute if int(minute) else 0}分" if int(minute + second) else ""
    return f"{part}{hour}点{minutes}" + (f"{second}秒" if int(second) else "")


def _money(found: re.Match[str]) -> str:
    unit, low, number, scale = _CURRENCIES[found["sign"]], found["low"], found["number"], found["scale"].strip()
    if unit[0] == "元" and not low and not scale and re.fullmatch(r"\d+\.\d\d?", number):
        return _cents(*number.split(".")) + unit[1:]
    start = f"{plain(_POWERS, low, scale if scale in _POWERS else '')}到" if low else ""
    return f"{start}{plain(_POWERS, number, scale)}{unit}"


def _cents(yuan: str, cents: str) -> str:
    """Only yuan have their own names for tenth and hundredth in speech: 十二元零五分."""
    tenths, hundredths = int(cents[0]), int(cents[1:] or 0)
    whole = f"{yuan}元" if int(yuan) or not int(cents) else ""
    zero = "零" if whole and hundredths and not tenths else ""
    return whole + (f"{tenths}角" if tenths else "") + zero + (f"{hundredths}分" if hundredths else "")


def _share(found: re.Match[str]) -> str:
    low, number, sign = found.groups()
    if number == "100" and sign == "%" and not low:
        return "百分之百"
    return _SHARES[sign] + (f"{_MANDARIN.number(low)}到" if low else "") + _MANDARIN.number(number)


def _thousands(found: re.Match[str]) -> str:
    return "到".join(plain(_POWERS, number, "k") for number in found.groups() if number)


_WRITING: Final = (
    rule(
        "", r"[０-９₀-₉％￥＋＝＜＞＠＃＆]|(?<=\d)[：．／](?=\d)", lambda found: unicodedata.normalize("NFKC", found[0])
    ),
    rule(" ", rf"(?<=[{_HAN}]) (?={NUMBER} [{_HAN}])|(?<=第) (?=\d)|(?<=\d) (?=[{_HAN}])", ""),
    *writing(_MANDARIN),
    rule("", "[Ⅰ-Ⅻ]", lambda found: _MANDARIN.cardinal(ord(found[0]) - ord("Ⅰ") + 1)),
)
"""One way to write a number, whatever the text does."""

_PLACES: Final = (
    rule(
        "-/.",
        rf"{ALONE}([12]\d{{3}})([-/.])(0?[1-9]|1[0-2])\2(0?[1-9]|[12]\d|3[01])(?![\d_]|[-/.]\d)(?:日|T(?=\d))?",
        lambda found: f"{found[1]}年{int(found[3])}月{int(found[4])}日",
    ),
    rule(
        "-/",
        rf"{ALONE}((?:19|20)\d\d)[-/](0[1-9]|1[0-2])(?![\d_A-Za-z]|年|{_SEASON}| ?[-/=.][\d=]?)",
        lambda found: f"{found[1]}年{int(found[2])}月",
    ),
    rule("#№.", r"(?:#(?<![A-Za-z\d#&/]#)|№|N[Oo]\.) ?(\d{1,18})(?![\d.A-Za-z])", r"\1号"),
    rule("#", r"(?<![A-Za-z\d#&/])#(?:([^\s#]{1,60})#(?!\d)|(?=[^\W\d]))", r"话题\1"),
    rule("版", r"版本 ?[vV]\.?(?=\d)", "版本"),
    rule(
        ".",
        rf"{ALONE}\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?![\dA-Za-z]|\.\d)",
        lambda found: "点".join(map(_MANDARIN.digits, found[0].split("."))),
    ),
    rule("V", r"(?<![A-Za-z\d.])V(\d{1,6})(?![\d.])", lambda found: f"V{_MANDARIN.code(found[1])}"),
    web.isolated(_WEB),
)
"""Days and addresses."""

_CODES: Final = (
    rule("1", rf"{ALONE}(?:\+?86[ -]?)?1[3-9]\d([ -]?)\d{{4}}\1\d{{4}}(?![\d-]|\.\d| ?[元万亿个])", _grouped),
    rule("+", r"(?<![\dA-Za-z+])\+\d{1,3}(?:[ -]\d{2,11}){1,5}(?![\dA-Za-z])", _grouped),
    rule("0", rf"{ALONE}(?:[(（]0\d{{2,3}}[)）] ?|0\d{{2,3}}[ -])\d{{7,8}}(?:[-转]\d{{1,6}})?(?!\d)", _grouped),
    rule(" ", rf"{ALONE}(?:[48]00(?: \d{{3,4}}){{2}}|\d{{4}}(?: \d{{4}}){{2,4}}(?: \d{{1,3}})?)(?! ?\d)", _grouped),
    rule("-", rf"{ALONE}\d{{1,18}}(?:-\d{{1,18}}){{2,8}}(?![\dA-Za-z-])", _grouped),
    rule("-", r"(?<=[A-Za-z])(?:-\d{1,18}){2,8}(?![\d.])", lambda found: " " + _grouped(found)),
    rule(
        "12",
        rf"{ALONE}[1-9]\d{{5}}(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{{3}}[\dXx](?![\dA-Za-z])",
        _grouped,
    ),
    rule(DIGITS, rf"(?:{_LABELS})[ ：:是为]{{0,3}}\d{{3,18}}(?:-\d{{1,6}})?{_NOT_COUNTED}", _spelled),
    rule("室房路道列医", r"(?<![\d.])\d{3,4}(?=室|号?房(?!价)|路(?![人程])|国道|次列车|医院)", _spelled),
    rule("1", rf"(?<=打)(?:11[0249]|12[02]){_NOT_COUNTED}|(?<!\d)(?:110|119|120)(?=报警|急救|火警)", _spelled),
    rule("569", rf"(?<![\d.])(?:985|211|996|618){_NOT_COUNTED}", _spelled),
)
"""Digits that name something are no amounts."""

_TIMES: Final = (
    rule(":", r"((?:比分|总分|比例|比率)[^\d\n]{0,6}\d{1,4}):(?=\d{1,4}(?![\d:]))", r"\1比"),
    rule(":-", r"(?<=\d)[:-](?=\d{1,3} ?(?:战胜|击败|[获取险大完]胜|领先|落后|逆转|不敌|负于|力克|战平))", "比"),
    rule(
        ":",
        r"(?<![\d:.])([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?(?![\d:]|\.\d)(?: ?([AaPp])\.?[Mm](?![A-Za-z]))?",
        _clock,
    ),
    rule("mM", r"(?<![\dA-Za-z:.])(1[0-2]|[1-9])()() ?([AaPp])\.?[Mm](?![A-Za-z])", _clock),
    rule(":", r"(?<=\d):(?=\d)", "比"),
)

_SPANS: Final = (
    rule("-", rf"(?<=\d) - (?={NUMBER}(?: |$|[=，。,?？)）]))", "减"),
    rule("=", rf"(?<=[\da-zA-Z)])-(?={NUMBER}(?: ?[-+×÷*/] ?{NUMBER}){{0,4}} ?=)", "减"),
    rule(
        _DASHES + "/",
        rf"(?<![\d/])([12]\d{{3}})(?:/|{_DASH})(\d\d)(?=年|{_SEASON})",
        lambda found: f"{_MANDARIN.digits(found[1])}到{_MANDARIN.digits(found[2])}",
    ),
    rule("kK", rf"(?<![A-Za-z\d.])(?:({NUMBER}){_DASH})?(?![248]K)({NUMBER})[kK](?![A-Za-z\d])", _thousands),
    rule(_DASHES, rf"(?<=\d)((?:{_UNIT}|[%‰])?){_DASH}{_NEXT}", r"\1到"),
    rule(_DASHES, rf"(?<=\d)([{_HAN}]{{1,3}})(?: - |[{_DASHES}]){_NEXT}", r"\1到"),
    rule(_DASHES, rf"(?<=[周期][一二三四五六日天])[{_DASHES}](?=(?:周|星期)?[一二三四五六日天])", "到"),
    rule(
        "-",
        rf"(?:(?<![\w)\]%°.,:/-])|(?<=[是为于到至达约得温差值率在从和与或比了]))-(?=(?:{_SIGN})?\d)"
        rf"|(?<=[{_HAN}])-(?={NUMBER} ?[%‰°度])",
        "负",
    ),
    rule("^", r"(?<=\w)\^(负?\d{1,18})", r"的\1次方"),
)

_YEARS: Final = (
    rule("年季", rf"(?<!\d)[12]\d{{3}}(?=[至到、和与及/][12]\d{{3}}(?:年|{_SEASON}))", _spelled),
    rule(
        "赛学财届级版款春世奥《",
        rf"(?<!\d)[12]\d{{3}}(?={_SEASON}|[届级版款]|春[节晚季]|世界杯|奥运)|(?<=《)[12]\d{{3}}(?!\d)",
        _spelled,
    ),
    rule("年", r"(?<!\d)[12]\d{3}(?=年)(?!(?<=000)年(?:[前间]|以上|的?(?:历史|文明)))", _spelled),
    rule("公", r"公元前?\d{3}(?=年)", _spelled),
    rule("年", rf"(?<![\d.第])(?:0\d(?=年)|\d\d(?=年(?:{_DATED})))", _spelled),
    rule("年", rf"(?<![\d.第了过近约满达龄有共整历长])[5-9][1-9](?=年(?!{_LASTED}))", _spelled),
    rule("后", r"(?<![\d.第满到过])(?:\d0|[0189]5)(?=后)", _spelled),
)
"""Years are read digit by digit: four digits (but for round thousands ago), three behind 公元, two that lead a date,
and 51 to 99 that are not round and not said to have lasted. All others are numbers of years."""

_AMOUNTS: Final = (
    rule("", rf"(?<![A-Za-z])(?P<sign>{_SIGN}) ?(?:(?P<low>{NUMBER})到(?:{_SIGN})?)?{_AMOUNT}元?", _money),
    rule(DIGITS, rf"(?<![\d.A-Za-z])(?:(?P<low>{NUMBER})到)?{_AMOUNT} ?(?P<sign>{_SIGN})(?![A-Za-z\d])", _money),
    rule("%‰‱", rf"(?<![\d.])(?:({NUMBER})到)?({NUMBER}) ?([%‰‱])", _share),
    rule("°度", rf"负(?={NUMBER}(?:到负?{NUMBER})? ?[°度])", "零下"),
    rule("wW", r"(?<=\d)[wW](?=[人个元块粉多次])", "万"),
    rule(
        "hm", r"(?<=\d)(h|min|m)(?=\d{1,2} ?(?:min|m|s)(?![A-Za-z]))", lambda found: "小时" if found[1] == "h" else "分"
    ),
    rule(
        DIGITS,
        rf"(?<![A-Za-z\d.])(?<![A-Za-z][ -])({NUMBER})(?: ?({_UNIT})|A(?![{_HAN}]))(?![A-Za-z\d])",
        lambda found: found[1] + (_UNITS[found[2]] if found[2] else "安"),
    ),
    rule("/", rf"(?<=[{_HAN}])/({_UNIT})(?![A-Za-z\d])", lambda found: f"每{_UNITS[found[1]]}"),
    rule(
        "/",
        r"(?<=[元块次米斤吨克升焦卡人件个台])/(?=[月年天日时分秒斤吨克升米人次个台件晚周股平]|小时|公斤|\d{1,4}(?:克|毫升|公里))",
        "每",
    ),
    rule(
        "/",
        r"(?<![\d/.])(?<![A-Za-z] )(?:(\d{1,6}+) )?(\d{1,9}+)/(\d{1,9}+)(?![\d/]|\.\d)",
        lambda found: (f"{found[1]}又" if found[1] else "") + f"{found[3]}分之{found[2]}",
    ),
    rule("xX*×", r"(?<=\d) ?[xX*×] ?(?=\d)", "乘"),
    rule("+", rf"(?<=\d0)\+(?=[{_HAN}])", "多"),
    rule("~～", r"(?<![\w~～])[~～](?=\d)", "约"),
)

_WORDS: Final = (
    rule("-", rf"(?<=[{_HAN}])-(?=\d)", ""),
    rule("-", r"(?<=[A-Za-z])-(?=\d)", " "),
    rule(DIGITS, rf"(?<=[A-Za-z])( ?)(\d{{3,18}}){_NOT_COUNTED}", lambda found: found[1] + _MANDARIN.code(found[2])),
    rule("2", rf"(?<![\d.A-Za-z第零元角点分之])(?<!公元)(?<!元前)(?<!民国)2(?=(?:到{NUMBER})? ?(?:{_MEASURE}))", "两"),
    rule(DIGITS, r"\d++(?:\.\d++)*+", lambda found: _MANDARIN.number(found[0])),
    rule("&", r"(?<=[A-Za-z])&(?=[A-Za-z])", " and "),
    rule("", f" ?({either(_SYMBOLS)}) ?", lambda found: _SYMBOLS[found[1]]),
    *MARK_RULES,
    rule("", f"[{re.escape(''.join(SILENT))}]", " "),
)
"""What is left of the digits and signs."""

_RULES: Final = (*_WRITING, *_PLACES, *_CODES, *_TIMES, *_SPANS, *_YEARS, *_AMOUNTS, *_WORDS)
