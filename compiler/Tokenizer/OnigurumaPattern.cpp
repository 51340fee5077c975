// A recursive-descent reader of Oniguruma's Ruby syntax that writes PCRE2.
//
// Where the two differ: `\s`, `\w`, `\d`, `\h` and `\b` are over other sets; `^` and `$` are at every line; `.` stops at
// line feeds unless (?m:); `{n,m}+` is a repetition of a repetition, not possessive; `{,m}` is a quantifier; `[a[bc]]`
// is a union and `&&` an intersection; \p{Script} is the script, not its extensions. Every literal is written as a
// letter, a digit or \x{...}, so nothing is special by accident. Groups do not capture: nothing refers to them.
#include "compiler/Tokenizer/OnigurumaPattern.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <vector>

namespace mcc {

namespace {

/// The members of `\s`, as the inside of a class: the property White_Space.
constexpr const char *spaceSet = "\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}"
                                 "\\x{202F}\\x{205F}\\x{3000}";
/// The members of `\w`: of the category No only the Latin-1 ones, and the circled and squared letters.
constexpr const char *wordSet = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}\\x{24B6}-\\x{24E9}"
                                "\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}";
constexpr const char *anyCharacter = "(?s:.)";
constexpr unsigned maxDepth = 100;

/// A set of characters: plain items for the inside of one class, and expressions of one character each.
struct CharacterSet {
  std::string items;
  std::vector<std::string> others;

  /// Returns an expression of one character that is in the set.
  std::string expression() const {
    if (others.empty())
      return items.empty() ? "(?!)" : "[" + items + "]";
    std::string out = "(?:";
    if (!items.empty())
      out += "[" + items + "]|";
    return out + llvm::join(others, "|") + ")";
  }
  /// Returns an expression of one character that is not in the set.
  std::string complement() const {
    if (others.empty())
      return items.empty() ? anyCharacter : "[^" + items + "]";
    return "(?:(?!" + expression() + ")" + anyCharacter + ")";
  }
  void add(const CharacterSet &more) {
    items += more.items;
    others.insert(others.end(), more.others.begin(), more.others.end());
  }
};

class Translator {
public:
  explicit Translator(llvm::StringRef source) : source(source) {}

  OnigurumaResult run() {
    OnigurumaResult result;
    result.pattern = alternatives(false, 0);
    if (problem.empty() && at < source.size())
      fail("')' closes no group");
    result.problem = problem;
    result.offset = problemOffset;
    return result;
  }

private:
  llvm::StringRef source;
  size_t at = 0;
  std::string problem;
  size_t problemOffset = 0;

  std::string fail(const std::string &what) {
    if (problem.empty()) {
      problem = what;
      problemOffset = at;
    }
    at = source.size();
    return {};
  }
  bool atEnd() const { return at >= source.size(); }
  char peek() const { return atEnd() ? '\0' : source[at]; }
  bool take(llvm::StringRef text) {
    if (!source.substr(at).starts_with(text))
      return false;
    at += text.size();
    return true;
  }

  /// Reads one character of UTF-8 (the JSON reader has checked it).
  uint32_t character() {
    uint8_t lead = source[at];
    unsigned length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    uint32_t value = length == 1 ? lead : lead & (0x7F >> length);
    for (unsigned i = 1; i < length && at + i < source.size(); ++i)
      value = value << 6 | (uint8_t(source[at + i]) & 0x3F);
    at += length;
    return value;
  }

  static std::string literal(uint32_t value) {
    if (value < 0x80 && llvm::isAlnum(char(value)))
      return std::string(1, char(value));
    return "\\x{" + llvm::utohexstr(value) + "}";
  }

  std::string alternatives(bool dotAll, unsigned depth) {
    if (depth > maxDepth)
      return fail("groups are nested deeper than " + std::to_string(maxDepth));
    std::string out = sequence(dotAll, depth);
    while (take("|"))
      out += "|" + sequence(dotAll, depth);
    return out;
  }

  std::string sequence(bool dotAll, unsigned depth) {
    std::string out;
    while (!atEnd() && peek() != '|' && peek() != ')')
      out += quantified(atom(dotAll, depth));
    return out;
  }

  /// Reads {n}, {n,}, {,m} or {n,m}; returns it as PCRE2 has it, or "" where the brace is a literal.
  std::string interval() {
    llvm::StringRef rest = source.substr(at);
    if (!rest.consume_front("{"))
      return {};
    llvm::StringRef low = rest.take_while(llvm::isDigit);
    rest = rest.drop_front(low.size());
    bool comma = rest.consume_front(",");
    llvm::StringRef high = comma ? rest.take_while(llvm::isDigit) : low;
    rest = rest.drop_front(comma ? high.size() : 0);
    if (!rest.consume_front("}") || (low.empty() && high.empty()) || low.size() > 5 || high.size() > 5)
      return {};
    at = size_t(rest.data() - source.data());
    if (!comma)
      return ("{" + low + "}").str();
    return ("{" + (low.empty() ? "0" : low) + "," + high + "}").str();
  }

  std::string quantified(std::string atom) {
    for (bool first = true; problem.empty() && !atEnd(); first = false) {
      std::string quantifier;
      bool isInterval = false;
      if (peek() == '*' || peek() == '+' || peek() == '?')
        quantifier = source[at++];
      else if (isInterval = true, (quantifier = interval()).empty())
        return atom;
      // A lazy {n}? is an optional {n}; {n,m}+ repeats the repetition: both are a second quantifier.
      bool fixed = isInterval && quantifier.find(',') == std::string::npos;
      if (!isInterval && take("+"))
        quantifier += "+";
      else if (!fixed && take("?"))
        quantifier += "?";
      atom = (first ? atom : "(?:" + atom + ")") + quantifier;
    }
    return atom;
  }

  std::string atom(bool dotAll, unsigned depth) {
    switch (peek()) {
    case '(':
      return group(dotAll, depth);
    case '[':
      return bracket(depth);
    case '\\':
      return escape();
    case '.':
      ++at;
      return dotAll ? anyCharacter : "[^\\x{A}]";
    case '^':
      ++at;
      return "(?m:^)";
    case '$':
      ++at;
      return "(?m:$)";
    case '*':
    case '+':
    case '?':
      return fail("the quantifier follows nothing");
    default:
      return literal(character());
    }
  }

  std::string group(bool dotAll, unsigned depth) {
    ++at;
    std::string open = "(?:";
    if (take("?")) {
      if (take("#")) {
        while (!atEnd() && peek() != ')')
          at += peek() == '\\' ? 2 : 1;
        return take(")") ? "" : fail("the comment has no end");
      }
      if (take(":"))
        open = "(?:";
      else if (take("<=") || take("<!") || take("=") || take("!") || take(">"))
        open = "(?" + source.substr(0, at).take_back(source[at - 2] == '<' ? 2 : 1).str();
      else if (!options(open, dotAll))
        return {};
    }
    std::string inside = alternatives(dotAll, depth + 1);
    return take(")") ? open + inside + ")" : fail("the group has no ')'");
  }

  /// Reads "i:", "m-i:", ...: sets what opens the group, and whether `.` takes line feeds.
  bool options(std::string &open, bool &dotAll) {
    bool off = false, caseOn = false, caseOff = false;
    for (; !atEnd() && peek() != ':'; ++at) {
      char c = peek();
      if (c == '-')
        off = true;
      else if (c == 'i')
        (off ? caseOff : caseOn) = true;
      else if (c == 'm')
        dotAll = !off;
      else {
        fail(c == ')' ? "options must be given for a group: (?i:...)" : std::string("the group option '") + c +
                                                                             "' is not supported");
        return false;
      }
    }
    ++at;
    open = caseOff ? "(?-i:" : caseOn ? "(?i:" : "(?:";
    return true;
  }

  /// Reads the name of \p{...} or \P{...}; adds it to `set`.
  void property(CharacterSet &set, bool negated) {
    if (!take("{")) {
      fail("a property is written \\p{Name}");
      return;
    }
    negated ^= take("^");
    size_t end = source.find('}', at);
    llvm::StringRef name = end == llvm::StringRef::npos ? llvm::StringRef() : source.slice(at, end);
    constexpr llvm::StringLiteral categories[] = {"C",  "Cc", "Cf", "Cn", "Co", "L",  "Ll", "Lm", "Lo", "Lt",
                                                  "Lu", "M",  "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No", "P",
                                                  "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S",  "Sc", "Sk",
                                                  "Sm", "So", "Z",  "Zl", "Zp", "Zs"};
    llvm::StringRef category = llvm::StringSwitch<llvm::StringRef>(name)
                                   .Case("Letter", "L")
                                   .Case("Mark", "M")
                                   .Case("Number", "N")
                                   .Case("Punctuation", "P")
                                   .Case("Symbol", "S")
                                   .Case("Separator", "Z")
                                   .Case("Other", "C")
                                   .Default(name);
    std::string item;
    if (llvm::is_contained(categories, category))
      item = ("{" + category + "}").str();
    else if (name.size() > 2 && llvm::all_of(name, [](char c) { return llvm::isAlpha(c) || c == '_'; }) &&
             llvm::isUpper(name[0]) && name != "Alnum" && name != "Alpha" && name != "Any" && name != "Blank" &&
             name != "Cntrl" && name != "Graph" && name != "Lower" && name != "Print" && name != "Punct" &&
             name != "Upper" && name != "Word" && name != "XDigit" && name != "Digit" && name != "Space")
      item = ("{sc:" + name + "}").str();
    else {
      fail("the property '" + name.str() + "' is not supported");
      return;
    }
    at = end + 1;
    set.items += (negated ? "\\P" : "\\p") + item;
  }

  uint32_t hexadecimal(size_t fewest, size_t most) {
    size_t begin = at;
    while (at < source.size() && at - begin < most && llvm::isHexDigit(source[at]))
      ++at;
    uint32_t value = 0;
    if (at - begin < fewest || source.slice(begin, at).getAsInteger(16, value) || value > 0x10FFFF)
      fail("a hexadecimal number of a character is expected here");
    return value;
  }

  /// Reads the escape after a backslash. Returns true with a set, or false with one character in `value`.
  bool escapedSet(CharacterSet &set, uint32_t &value) {
    size_t begin = at;
    char c = atEnd() ? '\0' : source[at];
    std::string inside = llvm::StringSwitch<const char *>(source.substr(at, 1).lower())
                             .Case("s", spaceSet)
                             .Case("w", wordSet)
                             .Case("d", "\\p{Nd}")
                             .Case("h", "0-9A-Fa-f")
                             .Default("");
    if (!inside.empty()) {
      ++at;
      CharacterSet named{inside, {}};
      if (llvm::isLower(c))
        set.add(named);
      else
        set.others.push_back(named.complement());
      return true;
    }
    ++at;
    switch (c) {
    case 'p':
    case 'P':
      property(set, c == 'P');
      return true;
    case 'n': value = '\n'; return false;
    case 't': value = '\t'; return false;
    case 'r': value = '\r'; return false;
    case 'f': value = '\f'; return false;
    case 'v': value = '\v'; return false;
    case 'a': value = '\a'; return false;
    case 'e': value = 0x1B; return false;
    case 'x':
      if (take("{")) {
        value = hexadecimal(1, 8);
        if (problem.empty() && !take("}"))
          fail("\\x{ has no '}'");
      } else if ((value = hexadecimal(1, 2)) > 0x7F) {
        fail("\\x with two digits above 7F is a byte, not a character");
      }
      return false;
    case 'u':
      value = hexadecimal(4, 4);
      return false;
    default:
      --at;
      if (atEnd() || llvm::isAlnum(c)) {
        at = begin;
        fail(atEnd() ? "the pattern ends in a backslash" : std::string("the escape '\\") + c + "' is not supported");
        return false;
      }
      value = character();
      return false;
    }
  }

  std::string escape() {
    ++at;
    std::string word = std::string("[") + wordSet + "]";
    std::string edge = "(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + ")";
    std::string assertion = llvm::StringSwitch<std::string>(source.substr(at, 1))
                                .Case("b", "(?:" + edge + ")")
                                .Case("B", "(?!" + edge + ")")
                                .Case("A", "\\A")
                                .Case("z", "\\z")
                                .Case("Z", "\\Z")
                                .Case("R", "\\R")
                                .Default("");
    if (!assertion.empty()) {
      ++at;
      return assertion;
    }
    CharacterSet set;
    uint32_t value = 0;
    return escapedSet(set, value) ? set.expression() : literal(value);
  }

  /// Reads [:name:] where it stands; returns false where none does.
  bool posixBracket(CharacterSet &set) {
    llvm::StringRef rest = source.substr(at);
    bool negated = rest.starts_with("[:^");
    if (!rest.starts_with("[:"))
      return false;
    size_t end = rest.find(":]");
    llvm::StringRef name = end == llvm::StringRef::npos ? llvm::StringRef() : rest.slice(negated ? 3 : 2, end);
    std::string inside = llvm::StringSwitch<const char *>(name)
                             .Case("space", spaceSet)
                             .Case("digit", "\\p{Nd}")
                             .Case("word", wordSet)
                             .Case("xdigit", "0-9A-Fa-f")
                             .Case("upper", "\\p{Lu}")
                             .Case("lower", "\\p{Ll}")
                             .Default("");
    if (name.empty() || !llvm::all_of(name, llvm::isLower))
      return false;
    if (inside.empty()) {
      fail("the bracket [:" + name.str() + ":] is not supported");
      return true;
    }
    at += end + 2;
    CharacterSet named{inside, {}};
    if (negated)
      set.others.push_back(named.complement());
    else
      set.add(named);
    return true;
  }

  /// Reads one item of a class and, where a range follows, its end.
  void classItem(CharacterSet &set, unsigned depth) {
    if (peek() == '[') {
      if (!posixBracket(set))
        nested(set, depth);
      return;
    }
    uint32_t low = 0;
    if (take("\\")) {
      // Inside a class \b is the backspace.
      if (take("b"))
        low = 8;
      else if (escapedSet(set, low))
        return;
    } else {
      low = character();
    }
    bool range = peek() == '-' && at + 1 < source.size() && source[at + 1] != ']';
    if (!range) {
      set.items += literal(low);
      return;
    }
    ++at;
    uint32_t high = 0;
    CharacterSet unused;
    if (peek() == '[' || (take("\\") ? escapedSet(unused, high) : (high = character(), false))) {
      fail("a range ends in a set");
      return;
    }
    if (high < low)
      fail("a range ends before it begins");
    set.items += literal(low) + "-" + literal(high);
  }

  void nested(CharacterSet &set, unsigned depth) {
    bool negated = false;
    CharacterSet inner = classSet(negated, depth + 1);
    if (negated)
      set.others.push_back(inner.complement());
    else
      set.add(inner);
  }

  /// Reads a class from its '[' on.
  CharacterSet classSet(bool &negated, unsigned depth) {
    CharacterSet set;
    if (depth > maxDepth) {
      fail("classes are nested deeper than " + std::to_string(maxDepth));
      return set;
    }
    ++at;
    negated = take("^");
    if (peek() == ']') {
      fail("the class is empty");
      return set;
    }
    std::vector<CharacterSet> factors;
    while (!atEnd() && peek() != ']') {
      if (take("&&")) {
        factors.push_back(std::move(set));
        set = {};
      } else {
        classItem(set, depth);
      }
    }
    if (problem.empty() && !take("]"))
      fail("the class has no ']'");
    if (factors.empty())
      return set;
    std::string product = "(?:";
    for (const CharacterSet &factor : factors)
      product += "(?=" + factor.expression() + ")";
    return {"", {product + set.expression() + ")"}};
  }

  std::string bracket(unsigned depth) {
    bool negated = false;
    CharacterSet set = classSet(negated, depth);
    return negated ? set.complement() : set.expression();
  }
};

} // namespace

OnigurumaResult translateOniguruma(llvm::StringRef source) { return Translator(source).run(); }

} // namespace mcc
