// generate_mutants.cc - a copy of the kernels in which every synchronising site can be made wrong at run
// time.
//
//   generate KERNELS PORT OUT
//
// KERNELS: src/device/kernels. PORT: port_emulator.h. Writes every file of KERNELS to OUT/kernels and the
// table of mutants to OUT/mutants.inc. Sites are found by what they call, not by a list of places:
//
//   - calls of the port's functions get the site's number as their last argument, and the emulator's port
//     does there what the mutant wants: nothing, no order, too small a scope;
//   - calls of the kernels' own functions that synchronise or tell others something can be left out;
//   - numbers posted or waited for can be one less or one more;
//   - "lane 0 alone" can become "every lane";
//   - comparisons of what a slot's head says, and of flags, can be left out.
//
// A function of the port that no rule knows is an error, so that no new one is forgotten.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace
{

using Effects = std::vector<std::string>;

const Effects kRemoved = {"REMOVED"};
const Effects kOrdered = {"REMOVED", "RELAXED", "NARROWED"};

// Of the port. None: plain or relaxed loads, and data that is no protocol's.
const std::map<std::string, Effects> kPort = {
    {"barrier", kRemoved},
    {"agree", {"REMOVED", "RELAXED"}},
    {"agree_all", {"REMOVED", "RELAXED"}},
    {"shuffle", kRemoved},
    {"vote_all", kRemoved},
    {"load_plain", {}},
    {"store_plain", kRemoved},
    {"load_bytes", {}},
    {"store_bytes", {}},
    {"load_pack", {}},
    {"store_pack", {}},
    {"load_relaxed", {}},
    {"store_relaxed", kRemoved},
    {"load_acquire", {"RELAXED", "NARROWED"}},
    {"store_release", kOrdered},
    {"fence", {"REMOVED", "NARROWED"}},
    {"stop_raised", kRemoved},
    {"has_reached", kOrdered},
    {"wait_until", kOrdered},
    {"poll_again", kRemoved},
    {"wait_flag", kRemoved},
    {"publish", kOrdered},
    {"announce", kRemoved},
    {"raise_stop", {"REMOVED", "RELAXED"}},
    {"breathe", {}},
    {"store_last", kOrdered},
    {"claim", kRemoved},
    {"load_ll", {}},
    {"store_ll", kRemoved},
    {"load_ll_pair", {}},
    {"store_ll_pair", kRemoved},
    {"load_line", {}},
    {"store_line", kRemoved},
};

// Of the kernels: what is left in their place.
const std::map<std::string, std::string> kOwn = {
    {"wait_for", "true"},    {"credit", "true"},          {"data", "true"},      {"matches", "true"},
    {"may_go_on", "true"},   {"hand_over", "(void)0"},    {"close", "(void)0"},  {"note_wait", "(void)0"},
    {"note_end", "(void)0"}, {"report_fault", "(void)0"}, {"refuse", "(void)0"}, {"may_move", "true"},
    {"is_expected", "true"}, {"end_part", "true"},        {"offer", "true"},     {"accept", "true"},
    {"consumed", "true"},    {"release", "(void)0"},      {"is_free", "true"},   {"enter_gate", "true"},
    {"leave_gate", "true"},  {"revoke", "(void)0"},       {"drop", "(void)0"},
};

// Whose arguments count steps.
const std::set<std::string> kCounts = {"wait_for", "publish", "has_reached", "wait_until"};

// Whose last argument does.
const std::set<std::string> kLastCounts = {"consumed"};

std::set<std::string> g_met; // what is called

struct Site {
    std::string file, function, text, effect;
    unsigned number;
};

std::string ReadFile(const std::filesystem::path &path)
{
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

// The same text with comments and strings blanked, so that positions stay.
std::string Blank(std::string text)
{
    for (size_t i = 0; i + 1 < text.size(); i++) {
        size_t end = i;
        if (text.compare(i, 2, "/*") == 0)
            end = text.find("*/", i + 2) + 2;
        else if (text.compare(i, 2, "//") == 0)
            end = text.find('\n', i);
        else if (text[i] == '"')
            end = text.find('"', i + 1) + 1;
        for (; i < end; i++)
            if (text[i] != '\n')
                text[i] = ' ';
    }
    return text;
}

bool IsWord(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// One file: what is in it, and what is put where.
class Source
{
  public:
    Source(const std::string &name, const std::string &text, std::vector<Site> &sites)
        : name_(name), text_(text), code_(Blank(text)), sites_(sites)
    {
    }

    std::string Mutated()
    {
        for (size_t i = 0; i < code_.size(); i++) {
            Track(i);
            bool begins =
                std::isalpha(static_cast<unsigned char>(code_[i])) && (i == 0 || !IsWord(code_[i - 1]));
            if (!begins)
                continue;
            size_t end = i;
            while (end < code_.size() && IsWord(code_[end]))
                end++;
            Look(code_.substr(i, end - i), i, end);
        }
        std::stable_sort(insertions_.begin(), insertions_.end(), Insertion::IsBefore);
        std::string out = text_;
        for (size_t i = insertions_.size(); i-- > 0;)
            out.insert(insertions_[i].at, insertions_[i].text);
        return out;
    }

  private:
    // What is put before position at, for something that begins at begin. Where several things end at one
    // position, as the calls in a(b(x)), the inner ones are closed first.
    struct Insertion {
        size_t at, begin;
        std::string text;

        static bool IsBefore(const Insertion &a, const Insertion &b)
        {
            bool close_both = a.begin < a.at && b.begin < b.at;
            return a.at != b.at ? a.at < b.at : close_both && a.begin > b.begin;
        }
    };

    // Which function position i is in: the name before the parentheses before its opening brace.
    void Track(size_t i)
    {
        if (code_[i] == '}' && !braces_.empty())
            braces_.pop_back();
        if (code_[i] != '{')
            return;
        size_t at = code_.find_last_not_of(" \n", i - 1);
        if (code_.compare(at - 4, 5, "const") == 0)
            at = code_.find_last_not_of(" \n", at - 5);
        std::string function; // a lambda has none
        if (code_[at] == ')') {
            size_t open = Matching(at, -1), last = code_.find_last_not_of(' ', open - 1), first = last + 1;
            while (first > 0 && IsWord(code_[first - 1]))
                first--;
            function = code_.substr(first, last + 1 - first);
        }
        bool is_block = function.empty() || function == "if" || function == "for" || function == "while" ||
                        function == "switch";
        braces_.push_back(is_block ? Function() : function);
    }

    std::string Function() const
    {
        return braces_.empty() ? "" : braces_.back();
    }

    // The parenthesis that belongs to the one at `at`.
    size_t Matching(size_t at, int step) const
    {
        int depth = 0;

        for (size_t i = at;; i = static_cast<size_t>(static_cast<long>(i) + step)) {
            depth += code_[i] == '(' ? 1 : code_[i] == ')' ? -1 : 0;
            if (depth == 0)
                return i;
        }
    }

    // A call, and not a declaration: no type stands before it.
    bool IsCall(size_t begin, size_t end, size_t *object_out) const
    {
        if (code_[end] != '(' || Function().empty())
            return false;
        while (begin > 0 && (IsWord(code_[begin - 1]) || code_[begin - 1] == '.'))
            begin--;
        *object_out = begin;
        size_t before = code_.find_last_not_of(" \n", begin - 1), first = before;
        while (first > 0 && IsWord(code_[first - 1]))
            first--;
        std::string word = code_.substr(first, before - first + 1);
        return !IsWord(code_[before]) || word == "return" || word == "else";
    }

    void Look(const std::string &word, size_t begin, size_t end)
    {
        size_t object = begin, call_end = end;

        if (word.compare(0, 5, "found") == 0 || word == "flag")
            CompareSite(begin, end);
        while (call_end < code_.size() && code_[call_end] == '<') /* template arguments */
            call_end = code_.find('>', call_end) + 1;
        if (!IsCall(begin, call_end, &object))
            return;
        size_t close = Matching(call_end, 1);
        std::string arguments = code_.substr(call_end + 1, close - call_end - 1);
        if (word == "lane_index")
            LaneSite(begin, close + 1);
        if (kCounts.count(word))
            CountSites(call_end + 1, close, begin);
        if (kLastCounts.count(word))
            CountSite(close, close - 1, begin, close + 1);
        g_met.insert(word);
        if (auto own = kOwn.find(word); own != kOwn.end()) {
            unsigned number = Add("", object, close + 1, kRemoved);
            Insert(object, object, "(" + Removed(number) + " ? " + own->second + " : ");
            Insert(close + 1, object, ")");
        }
        auto port = kPort.find(word);
        bool is_data = word == "store_plain" && arguments.compare(0, 1, "&") != 0;
        if (port == kPort.end() || port->second.empty() || is_data)
            return;
        unsigned number = Add("", begin, close + 1, port->second);
        Insert(close, begin,
               (arguments.empty() ? "" : ", ") + ("emulator::Site::Here(" + std::to_string(number) + ")"));
    }

    // lane_index() == 0, or != 0.
    void LaneSite(size_t begin, size_t end)
    {
        bool is_zero = code_.compare(end, 5, " == 0") == 0;

        if (!is_zero && code_.compare(end, 5, " != 0") != 0)
            return;
        unsigned number = Add("every lane instead of lane 0: ", begin, end + 5, kRemoved);
        Insert(begin, begin, is_zero ? "(" + Removed(number) + " || " : "(!" + Removed(number) + " && ");
        Insert(end + 5, begin, ")");
    }

    void CountSites(size_t begin, size_t end, size_t call)
    {
        for (size_t at = code_.find("+ 1", begin); at < end; at = code_.find("+ 1", at + 3))
            CountSite(at + 3, at, call, end + 1);
    }

    // The count that begins and ends there, in the call.
    void CountSite(size_t at, size_t begin, size_t call, size_t call_end)
    {
        unsigned number = Add("a count in ", call, call_end, {"LESS", "MORE"});

        Insert(at, begin, " + emulator::Shift(" + std::to_string(number) + ")");
    }

    // What was found in a slot, or a word's flag, == something, or != .
    void CompareSite(size_t begin, size_t end)
    {
        bool equal = code_.compare(end, 4, " == ") == 0, unequal = code_.compare(end, 4, " != ") == 0;

        if (!equal && !unequal)
            return;
        while (IsWord(code_[begin - 1]) || std::strchr(".[]", code_[begin - 1]))
            begin--;
        end += 4;
        for (int depth = 0; depth > 0 || !std::strchr(")?:;&|", code_[end]); end++)
            depth += code_[end] == '(' ? 1 : code_[end] == ')' ? -1 : 0;
        end = code_.find_last_not_of(" \n", end - 1) + 1;
        unsigned number = Add("taken for equal: ", begin, end, kRemoved);
        Insert(begin, begin, equal ? "(" + Removed(number) + " || " : "(!" + Removed(number) + " && ");
        Insert(end, begin, ")");
    }

    static std::string Removed(unsigned number)
    {
        return "emulator::IsRemoved(" + std::to_string(number) + ")";
    }

    unsigned Add(const std::string &what, size_t begin, size_t end, const Effects &effects)
    {
        unsigned number = next_++;
        std::string text;

        for (char c : text_.substr(begin, end - begin))
            if (!(std::isspace(static_cast<unsigned char>(c)) && !text.empty() && text.back() == ' '))
                text += std::isspace(static_cast<unsigned char>(c)) ? ' ' : c;
        unsigned turn = ++turns_[Function() + ": " + what + text];
        if (turn > 1)
            text += " (" + std::to_string(turn) + ")";
        for (const std::string &effect : effects)
            sites_.push_back({name_, Function(), what + text, effect, number});
        return number;
    }

    void Insert(size_t at, size_t begin, const std::string &text)
    {
        insertions_.push_back({at, begin, text});
    }

    std::string name_, text_, code_;
    std::vector<Site> &sites_;
    std::vector<std::string> braces_;
    std::vector<Insertion> insertions_;
    std::map<std::string, unsigned> turns_; // of equal sites in one function
    static unsigned next_;
};

unsigned Source::next_ = 1;

// Every rule is about something that the kernels call: a name that has changed would lose its mutants.
void CheckRules()
{
    std::vector<std::string> names(kCounts.begin(), kCounts.end());

    names.insert(names.end(), kLastCounts.begin(), kLastCounts.end());
    for (const auto &rule : kOwn)
        names.push_back(rule.first);
    for (const std::string &name : names) {
        if (!g_met.count(name)) {
            std::fprintf(stderr, "generate: there is a rule for %s(), which no kernel calls\n", name.c_str());
            std::exit(1);
        }
    }
}

// Every function of the emulator's port that takes a site has a rule.
void CheckPort(const std::string &port)
{
    for (size_t at = port.find("RONDO_SITE)"); at != std::string::npos;
         at = port.find("RONDO_SITE)", at + 1)) {
        size_t open = port.rfind('(', at), begin = open;
        while (IsWord(port[begin - 1]))
            begin--;
        std::string name = port.substr(begin, open - begin);
        if (!kPort.count(name)) {
            std::fprintf(stderr, "generate: no rule for %s() of the port\n", name.c_str());
            std::exit(1);
        }
    }
}

std::string Quoted(const std::string &text)
{
    std::string out = "\"";

    for (char c : text)
        out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return out + "\"";
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 4) {
        std::fprintf(stderr, "usage: generate KERNELS PORT OUT\n");
        return 2;
    }
    std::filesystem::path kernels = argv[1], out = argv[3];
    std::vector<std::filesystem::path> files;
    std::vector<Site> sites;

    CheckPort(ReadFile(argv[2]));
    std::filesystem::create_directories(out / "kernels");
    for (const auto &entry : std::filesystem::directory_iterator(kernels))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto &path : files) {
        std::string name = path.filename(), text = ReadFile(path);
        if (path.extension() == ".cuh")
            text = Source(name, text, sites).Mutated();
        std::ofstream(out / "kernels" / name) << text;
    }
    CheckRules();
    std::ofstream table(out / "mutants.inc");
    for (const Site &site : sites)
        table << "{" << site.number << ", Effect::" << site.effect << ", " << Quoted(site.file) << ", "
              << Quoted(site.function) << ", " << Quoted(site.text) << "},\n";
    return sites.empty();
}
