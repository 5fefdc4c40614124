import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from text.normalize.zh import normalize_zh

DIGITS = frozenset("0123456789")

NUMBERS = [
    pytest.param("0", "零", id="zero"),
    pytest.param("10和12", "十和十二", id="ten is no one-ten at the start"),
    pytest.param("110", "一百一十", id="but it is behind a hundred"),
    pytest.param("1001", "一千零一", id="a gap"),
    pytest.param("10010", "一万零一十", id="a gap over ten thousand"),
    pytest.param("100000", "十万", id="a hundred thousand"),
    pytest.param("1,234,567", "一百二十三万四千五百六十七", id="commas"),
    pytest.param("14.1亿", "十四点一亿", id="a decimal with a scale"),
    pytest.param(
        "123456789012345678",
        "十二亿三千四百五十六万七千八百九十亿一千二百三十四万五千六百七十八",
        id="eighteen digits",
    ),
    pytest.param("3.14", "三点一四", id="a decimal"),
    pytest.param(".5", "零点五", id="a decimal without a whole"),
    pytest.param("结果是-5", "结果是负五", id="a negative number"),
    pytest.param("歼-20和COVID-19", "歼二十和COVID 十九", id="a hyphen is no minus"),
    pytest.param("007", "零零七", id="zeros in front make a code"),
    pytest.param("１２３", "一百二十三", id="full-width digits"),
    pytest.param("第Ⅲ章", "第三章", id="a Roman numeral of its own code point"),
    pytest.param("12345678901234567890", "一二三四，五六七八，九零一二，三四五六，七八九零", id="a long run"),
]

TWO = [
    pytest.param("2个人，2位客人，2次", "两个人，两位客人，两次", id="measure words"),
    pytest.param("2年前，2小时，2点", "两年前，两小时，两点", id="spans of time and hours"),
    pytest.param("2块钱，2千米", "两块钱，两千米", id="money and distance"),
    pytest.param("2万，2亿，2百", "两万，两亿，两百", id="scales in words"),
    pytest.param("200，2000，20000，200000000", "二百，两千，两万，两亿", id="scales in digits"),
    pytest.param("2月2日，2号，2楼", "二月二日，二号，二楼", id="names of days and floors"),
    pytest.param("第2个，2%，2.5个", "第二个，百分之二，二点五个", id="ordinals, shares, decimals"),
    pytest.param("12个，22个", "十二个，二十二个", id="more than two"),
    pytest.param("2-3天", "两到三天", id="a span"),
    pytest.param("共 2 个", "共两个", id="with spaces around"),
    pytest.param("2年级，2次元，2人转", "二年级，二次元，二人转", id="words that begin like a measure"),
]

DATES = [
    pytest.param("2025年", "二零二五年", id="a year"),
    pytest.param("1999-2003年", "一九九九到二零零三年", id="years from to"),
    pytest.param("98年，08年5月", "九八年，零八年五月", id="two digits"),
    pytest.param("5年，10年，100年", "五年，十年，一百年", id="spans of years"),
    pytest.param("至今已有76年", "至今已有七十六年", id="a span that looks like a year"),
    pytest.param("1000年前，2008年前", "一千年前，二零零八年前", id="only round thousands are ago"),
    pytest.param("公元前221年", "公元前二二一年", id="before Christ"),
    pytest.param("90年代的90后", "九十年代的九零后", id="a decade and its children"),
    pytest.param("2024/25赛季", "二零二四到二五赛季", id="a season"),
    pytest.param("2025年12月1日", "二零二五年十二月一日", id="a date"),
    pytest.param("2025-12-01", "二零二五年十二月一日", id="a date with dashes"),
    pytest.param("2025/12/1", "二零二五年十二月一日", id="a date with slashes"),
    pytest.param("2025.12.1", "二零二五年十二月一日", id="a date with dots"),
    pytest.param("3月5日-7日", "三月五日到七日", id="days from to"),
]

TIMES = [
    pytest.param("9:30", "九点三十分", id="half past"),
    pytest.param("9:05", "九点零五分", id="five past"),
    pytest.param("9:00", "九点", id="a full hour"),
    pytest.param("2：30", "两点三十分", id="a full-width colon"),
    pytest.param("21:15:30", "二十一点十五分三十秒", id="seconds"),
    pytest.param("21:00:05", "二十一点零分零五秒", id="seconds without minutes"),
    pytest.param("下午3:00", "下午三点", id="afternoon"),
    pytest.param("9:30 PM", "晚上九点三十分", id="PM"),
    pytest.param("9:30-11:00", "九点三十分到十一点", id="from to"),
    pytest.param("9:00 - 18:00", "九点到十八点", id="from to with spaces"),
    pytest.param("比分3:2", "比分三比二", id="a score"),
    pytest.param("以21:15获胜", "以二十一比十五获胜", id="a score that looks like a time"),
    pytest.param("16:9", "十六比九", id="a ratio"),
    pytest.param("周一-周五", "周一到周五", id="days of the week"),
]

MONEY = [
    pytest.param("¥12.50", "十二元五角", id="tenths"),
    pytest.param("¥12.05", "十二元零五分", id="hundredths"),
    pytest.param("￥100", "一百元", id="a full-width sign"),
    pytest.param("0.5元", "零点五元", id="a decimal before its unit"),
    pytest.param("$5.3", "五点三美元", id="dollars"),
    pytest.param("$5.3亿，5.3亿美元", "五点三亿美元，五点三亿美元", id="a scale"),
    pytest.param("$5.3 billion", "五十三亿美元", id="an English scale"),
    pytest.param("€20，-$5", "二十欧元，负五美元", id="euros and a debt"),
    pytest.param("RMB 100，100 USD", "一百元人民币，一百美元", id="codes"),
    pytest.param("¥10-20", "十到二十元", id="a span of money"),
    pytest.param("2元/斤", "两元每斤", id="a price per pound"),
]

MEASURES = [
    pytest.param("50%，100%", "百分之五十，百分之百", id="percent"),
    pytest.param("-3.5%", "负百分之三点五", id="a negative percentage"),
    pytest.param("20%-30%", "百分之二十到百分之三十", id="a span of percent"),
    pytest.param("5‰", "千分之五", id="per mille"),
    pytest.param("25°C，-5℃", "二十五摄氏度，零下五摄氏度", id="degrees"),
    pytest.param("-5~5℃", "零下五到五摄氏度", id="a span of degrees"),
    pytest.param("2kg，500ml，5km", "两千克，五百毫升，五公里", id="units"),
    pytest.param("120km/h，10m/s", "一百二十公里每小时，十米每秒", id="speeds"),
    pytest.param("90m²，3m³", "九十平方米，三立方米", id="areas and volumes"),
    pytest.param("16GB，2 GB", "十六GB，两GB", id="bytes stay letters"),
    pytest.param("3.5GHz，60W，220V，5A", "三点五吉赫，六十瓦，二百二十伏，五安", id="electricity"),
    pytest.param("1h30min，20ms", "一小时三十分钟，二十毫秒", id="spans of time"),
    pytest.param("5μm，5Ω", "五微米，五欧姆", id="Greek letters of either code point"),
    pytest.param("5A级，iPhone 5s", "五A级，iPhone 五s", id="letters that are no units"),
    pytest.param("10-20，10~20，3–5天", "十到二十，十到二十，三到五天", id="ranges"),
    pytest.param("5k，1.5k，20K，4K电视", "五千，一千五百，两万，四K电视", id="thousands"),
    pytest.param("500+家", "五百多家", id="more than"),
]

NAMES = [
    pytest.param("v2.0.1，iOS 17.1.2", "版本二点零点一，iOS 十七点一点二", id="versions"),
    pytest.param("192.168.1.1", "一九二点一六八点一点一", id="an IP address"),
    pytest.param(
        "看https://a.com/docs?x=1。他说", "看a 点 com 斜杠 docs。他说", id="a URL ends where the Chinese goes on"
    ),
    pytest.param("邮箱a_1@qq.com给我", "邮箱a 下划线一艾特 qq 点 com给我", id="an e-mail address among Han"),
    pytest.param("@张三 #春节快乐# #5", "艾特张三 话题春节快乐 五号", id="a mention, a topic, a number"),
    pytest.param("13800138000", "一三八，零零一三，八零零零", id="a mobile number"),
    pytest.param("拨打138-0013-8000咨询", "拨打一三八，零零一三，八零零零咨询", id="one with dashes"),
    pytest.param("+86 138 0013 8000", "加八六，一三八，零零一三，八零零零", id="one with its country"),
    pytest.param("010-12345678", "零一零，一二三四五六七八", id="a landline"),
    pytest.param("打120，120个", "打一二零，一百二十个", id="a number to call is no amount"),
    pytest.param("密码是123456，房间302", "密码是一二三四五六，房间三零二", id="digits with a label"),
    pytest.param("110101199003071234", "一一零一零一，一九九零零三零七，一二三四", id="an identity card"),
    pytest.param("A4，B2B，MP3，5G", "A四，B二B，MP三，五G", id="letters with digits"),
    pytest.param("Windows 11和GPT-4", "Windows 十一和GPT 四", id="products"),
    pytest.param("A380，S500，RTX 4090", "A三八零，S五百，RTX 四零九零", id="models"),
    pytest.param("PM2.5和CO₂", "PM二点五和CO二", id="decimals and subscripts in names"),
]

MATHEMATICS = [
    pytest.param("第1，第22届", "第一，第二十二届", id="ordinals"),
    pytest.param("3/4，1/2，½，1½", "四分之三，二分之一，二分之一，一又二分之一", id="fractions"),
    pytest.param("3+4=7", "三加四等于七", id="a sum"),
    pytest.param("5 - 3，5-3=2", "五减三，五减三等于二", id="a difference"),
    pytest.param("3×4，3*4，8÷2", "三乘四，三乘四，八除以二", id="a product and a quotient"),
    pytest.param("x≥5，±3，≈2，>1", "x大于等于五，正负三，约等于二，大于一", id="comparisons"),
    pytest.param("10^8", "十的八次方", id="a power"),
    pytest.param("A & B，R&B", "A和B，R and B", id="an ampersand"),
]

CHINESE = [*NUMBERS, *TWO, *DATES, *TIMES, *MONEY, *MEASURES, *NAMES, *MATHEMATICS]

SENTENCE = (
    "会议定于2025年12月1日下午2:30在2号楼201室举行，气温-5℃，门票¥12.50，增长20%-30%，电话13800138000，"
    "速度120km/h，见www.baidu.com，GPT-4和iPhone 15各2台，比分3:2，约3/4的人到场，3+4=7。"
)
PROSE = "今天天气很好，我们一起去公园散步，然后在湖边的茶馆里坐了一个下午，聊起小时候的事情。"


@pytest.mark.parametrize(("written", "said"), CHINESE)
def test_what_is_written_is_said(written, said):
    assert normalize_zh(written) == said


@pytest.mark.parametrize(("written", "said"), CHINESE)
def test_what_is_said_is_said_again_the_same(written, said):
    assert normalize_zh(said) == said


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("你好，世界！“再见”？《书》（注）……", id="marks"),
        pytest.param("他在Google工作，用iPhone。", id="Latin words"),
        pytest.param("二〇二五年，两个人，和/或", id="numbers in Han"),
        pytest.param("第一行\n第二行", id="line ends"),
    ],
)
def test_what_needs_no_words_stays(text):
    assert normalize_zh(text) == text.replace("“", '"').replace("”", '"')


@given(
    text=st.text(
        alphabet=st.one_of(
            st.sampled_from("0123456789.,:/-–~～：%$¥€°²½#@&+=*()'\" \nvVkKmgAX年月日点分个元号第比到负零版本公房"),
            st.characters(),
        )
    )
)
@settings(max_examples=300, deadline=None)
def test_no_digit_of_any_text_is_left(text):
    assert DIGITS.isdisjoint(normalize_zh(text))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("7" * 10_000, id="digits"),
        pytest.param(((SENTENCE + PROSE * 2) * 100)[:20_000], id="mixed"),
        pytest.param((PROSE * 1_000)[:20_000], id="no digit at all"),
    ],
)
def test_a_long_text_takes_less_than_a_tenth_of_a_second(text):
    assert any(seconds(text) < 0.1 for _ in range(5))  # the processor is not always free


@pytest.mark.parametrize(
    "piece",
    [
        "1-", "1:", "1.1.", ",", "1,", "1/", "1 ", "1到", "1人-", "-5~", "1+", "1k", "$1", "1%", "#a", "a@", "a.",
        "a-1", "编号: ", "111111111111111111-",
    ],
)  # fmt: skip
def test_no_repeated_piece_is_slow(piece):
    assert seconds(piece * (20_000 // len(piece))) < 0.5  # of a pattern that is not linear it would be seconds


def seconds(text):
    started = time.process_time()
    said = normalize_zh(text)
    taken = time.process_time() - started
    assert DIGITS.isdisjoint(said)
    return taken
